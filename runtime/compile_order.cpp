#include "runtime/compile_order.h"

#include <algorithm>

#include "jit/base/json_writer.h"
#include "runtime/compile_steps.h"
#include "runtime/entries.h"
#include "runtime/report/pass_report.h"

namespace kiln {
namespace {

// One of compile()'s phases, and what of Kiln's own runs in it.
class Stages {
 public:
  void begin(std::string_view name, std::string_view doc) {
    end();
    json_.begin_object().member("name", name).member("doc", doc).key("steps").begin_list();
    open_ = true;
  }
  void step(std::string_view name, std::string_view doc) {
    json_.begin_object().member("name", name).member("doc", doc).end_object();
  }
  void passes(const PassPtrs &passes, Stage stage) {
    for (const auto &pass : passes)
      if (pass->stage == stage) write_report(*pass, json_);
  }
  void end() {
    if (open_) json_.end_list().end_object();
    open_ = false;
  }
  JsonWriter &json() { return json_; }

 private:
  JsonWriter json_;
  bool open_ = false;
};

// Whether graphs are cut into parts, as far as the graph at hand tells before its passes have run.
bool is_cut(const Work &work, const Graph &graph) {
  const Result<ChosenBackends> chosen = chosen_backends(work, graph);
  return work.options.modes().cut() || (chosen.ok() && !chosen->empty()) || !Refusals(work.backend()).takes(graph);
}

// Whether some region's rounding is.
bool may_relax(const CompileOptions &options) {
  const AttrValue relaxed = to_attr(Rounding::relaxed);
  return options.rounding == Rounding::relaxed || std::ranges::any_of(options.of_regions, [&](const auto &option) {
           return option.first.ends_with(".rounding") && option.second == relaxed;
         });
}

void lower_steps(const Work &work, bool cut, const PassPtrs &late, Stages &stages) {
  if (cut) {
    stages.step("inline_calls", "calls that are no region become the nodes that they stand for");
    stages.step("partition", str_cat("regions by marks, under mode ", described(work.options.modes())));
  }
  stages.step("inline_calls", cut ? "what is left of calls" : "calls become the nodes that they stand for");
  stages.passes(late, Stage::lower);
  stages.step("widen", "small floats are computed with in f32");
  stages.step("decompose", "composite ops become simpler ones");
  if (may_relax(work.options) && !work.backend().on_device())
    stages.step("winograd", "under rounding=relaxed windows of 3 by 3 become products of tiles");
  stages.step("convert_early", "what rounds a result goes before what reshapes it");
  stages.step("split_concats", "a concat of very many operands becomes a tree");
  stages.step("merge_equal_nodes", "what decompositions have in common is computed once");
  stages.step("lower", "ops become loops");
}

constexpr std::string_view fused = "ops that may share a kernel do";
constexpr std::string_view kernels_compiled = "those that the cache has not are compiled",
                           not_compiled = "no code is made";

// From the graph that the pipeline leaves to kernels.
void code_stages(const Work &work, const Graph &graph, const Cuts &cuts, const PassPtrs &late, Stages &stages) {
  if (cuts.any_in(graph)) {
    stages.begin("pieces", "each is looked up by itself; what is not found is made so, from inline_calls on");
    stages.step("cut", "into pieces, where split_at and marks say");
    lower_steps(work, is_cut(work, graph), late, stages);
    stages.step("fuse", fused);
    stages.step("kernels", work.options.code ? kernels_compiled : not_compiled);
    return;
  }
  const bool cut = is_cut(work, graph);
  stages.begin("lower", cut ? "each region by itself, equal ones once" : "the whole graph, which is one region");
  lower_steps(work, cut, late, stages);
  stages.begin("fuse", fused);
  stages.begin("kernels", work.options.code ? kernels_compiled : not_compiled);
}

}  // namespace

Result<std::string> compile_order(const CompileEnvironment &env, const Graph &graph, const CompileOptions &options) {
  CompileReport unused;
  Work work{env, options, unused};
  KILN_TRY(choose_target(work).status());
  KILN_TRY(verify(graph));
  KILN_TRY(check_request(work, graph));
  KILN_ASSIGN(const Cuts cuts, cuts_of(work));
  KILN_ASSIGN(const std::vector<FixedSizes> entries, wanted_entries(options, graph));
  KILN_ASSIGN(const Passes passes, select_passes(work));
  const Bypass bypass = bypass_of(work, graph, passes.late);

  Stages stages;
  JsonWriter &json = stages.json();
  json.begin_object().member("backend", options.backend).member("mode", described(options.modes()));
  json.member("bypass", bypass.reason).key("stages").begin_list();
  stages.begin("verify", "the graph as it is given");
  stages.begin("early passes", "at every compile: the key is of the graph that they make");
  stages.passes(passes.early, Stage::pre_grad);
  stages.begin("key", bypass.reason.empty() ? "of graph, options, late passes, target, backend and build"
                                            : "none: the cache is bypassed");
  if (bypass.reason.empty()) stages.begin("lookup", "on a HIT nothing else runs but load");
  if (!work.oracle()) {
    stages.begin("pre_grad", "on the whole graph");
    stages.passes(passes.late, Stage::pre_grad);
    stages.begin("post_grad", "on the whole graph");
    stages.passes(passes.late, Stage::post_grad);
    code_stages(work, graph, cuts, passes.late, stages);
  }
  stages.begin("plan", "order, memory and steps of a call");
  stages.begin("artifact", bypass.reason.empty() ? "written, and published to the cache" : "written");
  stages.begin("load", "as on a HIT");
  if (!entries.empty()) stages.begin("entries", "for each of the sizes the same, from lower on");
  stages.end();
  return json.end_list().end_object().take();
}

}  // namespace kiln
