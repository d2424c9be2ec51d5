#include "runtime/compile_explain.h"

#include <algorithm>

#include "jit/base/json_writer.h"
#include "runtime/compile_steps.h"
#include "runtime/passes/builtin.h"
#include "runtime/passes/nested_graphs.h"

namespace kiln {
namespace {

using patterns::Explained;

struct Told {
  Explained all;
  std::string where;  // of the closest place: the nodes in whose graphs it is
};

void explain(const patterns::PatternSet &set, const Graph &graph, std::string_view where, std::vector<Told> &told) {
  std::vector<Explained> here(told.size());
  set.explain(graph, here);
  for (size_t i = 0; i < told.size(); ++i) {
    told[i].all.found += here[i].found;
    const patterns::Miss &miss = here[i].closest;
    if (miss.why.empty() || (!told[i].all.closest.why.empty() && miss.met <= told[i].all.closest.met)) continue;
    told[i].all.closest = miss;
    told[i].where = where;
  }
}

Result<GraphPtr> before_pass(Work &work, const Passes &passes, const Pass &pass, GraphPtr graph) {
  PassPtrs all = passes.early;
  all.insert(all.end(), passes.late.begin(), passes.late.end());
  bool lowered = false;
  for (const auto &earlier : all) {
    if (earlier->stage == Stage::lower && !lowered) {
      lowered = true;
      KILN_ASSIGN(graph, inline_calls(std::move(graph), work.ops));
    }
    if (earlier.get() == &pass) return graph;
    PassRun run = run_of(*earlier);
    KILN_ASSIGN(graph, run_pass(*earlier, graph, work.ops, run));
  }
  return graph;
}

std::string text_of(const Pass &pass, const std::vector<Told> &told, const PassRun &run) {
  JsonWriter json;
  json.begin_object().member("pass", pass.name).member("plugin", pass.plugin).member("stage", name_of(pass.stage));
  json.member("rewrites", run.rewrites).key("patterns").begin_list();
  for (size_t i = 0; i < told.size(); ++i) {
    const patterns::Pattern &pattern = pass.patterns->set.patterns()[i];
    const patterns::Term &root = pattern.terms[pattern.root()];
    json.begin_object().member("name", pattern.name).member("found", told[i].all.found);
    json.member("matches", run.patterns[i].matches).member("expected", pattern.expected);
    const patterns::Miss &miss = told[i].all.closest;
    json.key("closest").begin_object().member("graph", told[i].where).member("node", miss.node);
    json.member("met", miss.met).member("of", pattern.terms.size());
    json.member("failed", !miss.why.empty() ? miss.why
                          : told[i].all.found
                              ? ""
                              : str_cat("no node is ", join(root.ops, " or ", [](const auto *op) { return op->name; }),
                                        ", at which the pattern begins"));
    json.end_object().end_object();
  }
  return json.end_list().end_object().take();
}

}  // namespace

Result<std::string> explain_pass(const CompileEnvironment &env, GraphPtr graph, const CompileOptions &options,
                                 std::string_view name) {
  CompileReport unused;
  Work work{env, options, unused};
  KILN_TRY(choose_target(work).status());
  KILN_TRY(verify(*graph));
  KILN_TRY(check_request(work, *graph));
  KILN_ASSIGN(const Passes passes, select_passes(work));
  std::shared_ptr<const Pass> pass;
  for (const PassPtrs *each : {&passes.early, &passes.late})
    for (const auto &selected : *each)
      if (selected->name == name) pass = selected;
  if (!pass) return error(Code::unknown_name, "no pass that would run is named '", name, "'");
  if (!pass->patterns) return invalid(described(*pass), " has no patterns to explain");

  KILN_ASSIGN(graph, before_pass(work, passes, *pass, std::move(graph)));
  std::vector<Told> told(pass->patterns->set.patterns().size());
  const patterns::PatternSet &set = pass->patterns->set;
  KILN_TRY(rewrite_nested(graph, [&](const GraphPtr &nested, const std::string &where) -> Result<GraphPtr> {
             explain(set, *nested, where, told);
             return nested;
           }).status());
  explain(set, *graph, "", told);
  PassRun run = run_of(*pass);
  KILN_TRY(run_pass(*pass, graph, work.ops, run).status());
  return text_of(*pass, told, run);
}

}  // namespace kiln
