#include "runtime/entries.h"

#include <algorithm>
#include <map>

#include "runtime/cache/key.h"
#include "runtime/compile_steps.h"
#include "runtime/plan/source.h"

namespace kiln {
namespace {

std::string known_symbols(const Graph &graph) {
  std::string names;
  for (const auto &[name, info] : graph.symbols())
    if (!graph.resolver(name)) str_append(names, str_cat(names.empty() ? "" : ", ", name));
  return names.empty() ? "; the graph has none" : str_cat("; the graph has ", names);
}

Status check_size(const Graph &graph, const std::string &name, int64_t size) {
  if (const Node *node = graph.resolver(name))
    return invalid("symbol '", name, "' is what node '", node->name, "' tells in a run; only inputs' sizes are known ",
                   "before");
  const auto found = graph.symbols().find(name);
  if (found == graph.symbols().end())
    return error(Code::unknown_name, "there is no symbol '", name, "'", known_symbols(graph));
  const SymbolInfo &info = found->second;
  if (size < info.min) return invalid(name, " is ", size, ", expected at least ", info.min);
  if (size > info.max) return invalid(name, " is ", size, ", expected at most ", info.max);
  if (size % info.divisor != 0) return invalid(name, " is ", size, ", expected a multiple of ", info.divisor);
  return {};
}

std::string of_option(std::string_view text) { return str_cat("option 'specialize', '", text, "': "); }

}  // namespace

Result<std::vector<FixedSizes>> wanted_entries(const CompileOptions &options, const Graph &graph) {
  std::vector<FixedSizes> wanted;
  std::map<FixedSizes, std::string_view> first;
  for (const std::string &text : options.specialize) {
    Result<FixedSizes> sizes = parse_fixed_sizes(text);
    if (!sizes.ok())
      return error(sizes.status().code(), of_option(text), sizes.status().message(),
                   "; expected texts like 'batch=1,length=128'");
    for (const auto &[name, size] : *sizes) {
      if (Status status = check_size(graph, name, size); !status.ok())
        return std::move(status).with_prefix(of_option(text));
    }
    if (const auto [same, is_new] = first.emplace(*sizes, text); !is_new)
      return invalid(of_option(text), "the sizes are there already, as '", same->second, "'");
    wanted.push_back(std::move(sizes).value());
  }
  const BackendInfo &backend = base_backend(options.backend);  // it has been checked
  if (!wanted.empty() && !backend.makes_code())
    return invalid("option 'specialize': backend ", backend.name,
                   " runs the graph as it is; there is nothing to specialize");
  return wanted;
}

Status make_entry(const CompileEnvironment &given, const EntryMaker &maker, const Executable &general, size_t number,
                  CompileReport &report) {
  CompileEnvironment env = given;
  env.functions = maker.functions;
  env.backends = maker.backends;
  const Entries::Entry &entry = general.entries()[number];
  Work work{env, maker.options, report};
  work.lower = maker.lower;
  work.questions = maker.questions;
  report.target = maker.target.name();
  report.backend = maker.options.backend;
  const Artifact &of_all = general.artifact();
  Artifact artifact;
  artifact.graph_key = of_all.graph_key;
  artifact.components = of_all.components;
  artifact.build_id = of_all.build_id;
  artifact.backend = of_all.backend;
  artifact.target = of_all.target;
  for (const Answer &answer : of_all.answers) work.asked.insert(answer.question);
  if (artifact.graph_key == Digest{} || !maker.uncacheable.empty()) {
    artifact.graph_key = {};
    artifact.components.clear();
    report.lookup = Outcome::bypass;
    report.reason = maker.uncacheable.empty() ? "that of the program for all sizes is bypassed" : maker.uncacheable;
  } else {
    artifact.components.push_back({"sizes", digest_of(entry.name()), entry.name()});
    artifact.graph_key = report.key = graph_key(artifact.components);
  }
  const auto make = [&](Work &part, Artifact begun) -> Result<Compiled> {
    GraphPtr whole = maker.whole;
    if (!whole) {
      KILN_TRY(part.phases.begin("graph"));
      KILN_ASSIGN(whole, read_source(general.shared_artifact(), env.ops));
    }
    KILN_TRY(part.phases.begin("specialize"));
    KILN_ASSIGN(const GraphPtr fixed, specialize(whole, entry.sizes()));
    part.fixed = {std::move(whole), entry.sizes()};
    return build(part, *maker.given, fixed, maker.target, std::move(begun));
  };
  KILN_ASSIGN(ExecutablePtr made, look_up(work, *maker.given, artifact));
  if (!made) {
    KILN_ASSIGN(Compiled compiled, make(work, std::move(artifact)));
    made = std::move(compiled.executable);
  } else if (maker.options.verify) {
    artifact.graph_key = {};
    artifact.components.clear();
    KILN_TRY(verify_found(work, made->artifact(), [&](Work &again) {
      again.report.lookup = Outcome::bypass;
      return make(again, std::move(artifact));
    }));
  }
  work.phases.end();
  return general.entries().put(number, std::move(made), general.plan());
}

Status make_entries(const CompileEnvironment &env, const std::shared_ptr<const EntryMaker> &maker,
                    const std::vector<FixedSizes> &sizes, const std::shared_ptr<const Executable> &general,
                    CompileReport &report) {
  const SpecializeWhen when = maker->options.specialize_when;
  const bool is_later =
      when != SpecializeWhen::ahead && env.later && maker->lower.empty() && maker->backends->all_for_any_thread();
  Entries::Ask ask;
  if (is_later) {
    // Not the executable itself, which has the function: whoever asks holds it.
    ask = [later = env.later, maker, weak = std::weak_ptr(general)](size_t number, std::shared_ptr<void> turn) {
      if (auto strong = weak.lock()) later({maker, std::move(strong), number, std::move(turn)});
    };
  }
  Entries &entries = general->entries();
  entries.begin(sizes, general->plan(), std::move(ask));
  for (size_t i = 0; i < sizes.size(); ++i) {
    EntryReport &told = report.entries.emplace_back(EntryReport{entries[i].name(), sizes[i], nullptr});
    if (is_later) {
      if (when == SpecializeWhen::background) entries.ask_for(i);
      continue;
    }
    told.made = std::make_shared<CompileReport>();
    if (Status status = make_entry(env, *maker, *general, i, *told.made); !status.ok())
      return std::move(status).with_prefix(str_cat("entry '", entries[i].name(), "': "));
  }
  return {};
}

}  // namespace kiln
