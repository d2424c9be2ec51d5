#include "runtime/regions/lower_graphs.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/ops/nested.h"
#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

// A graph that is cut into parts: neither its nodes nor its parts are lowered here.
Result<LoweredGraph> cut(GraphPtr graph, const OpTable &ops, const LowerOptions &options, Refusals &refusals,
                         const Offers &offers) {
  LoweredGraph out{.given = graph, .options = options.region};
  // Sizes have names in the whole graph: a call that tells some is inlined here, where each gets a name of its own. So
  // are all, where nodes are offered to backends one by one.
  const auto is_part = [&](const Node &call) {
    const Graph &called = called_graph(call);
    return options.backends.empty() && region_of(call, options.modes).value_or("") != "" && !resolves_sizes(called) &&
           refusals.takes_called(called, call.annotations);
  };
  KILN_ASSIGN(out.graph, inline_calls(std::move(graph), ops, is_part));
  KILN_ASSIGN(const RegionChoices choices,
              RegionChoices::of(*out.graph, options.modes, options.region, options.of_regions));
  KILN_TRY(choices.check(options.backends));
  if (!options.backends.empty()) {
    KILN_ASSIGN(out.graph, offers.decompose(std::move(out.graph), [&](const Node &node) {
      const std::optional<std::string> name = region_of(node, options.modes);
      return name ? &choices.at(node, *name) : nullptr;
    }));
  }
  KILN_ASSIGN(std::vector<Region> regions,
              partition(out.graph, refusals, options.modes, choices, *options.functions, offers));
  for (Region &region : regions) {
    if (region.kind == Region::Kind::reference && region.function.empty() &&
        is_decomposed_always(*out.graph->find(region.node))) {
      KILN_ASSIGN(region.graph, flatten(std::move(region.graph), ops, options));
    }
    out.regions.push_back(LoweredRegion{.region = std::move(region)});
  }
  return out;
}

// What another part reads may be made once a binding; what becomes of an input is made at each call.
void let_outputs_be_prepared(Lowered &lowered) {
  for (const kernel::Program::Def &def : lowered.program.defs)
    for (const uint32_t result : def.results) {
      kernel::Tensor &tensor = lowered.program.tensors[result];
      const bool is_written =
          std::ranges::find(lowered.write_backs, result, &Lowered::WriteBack::source) != lowered.write_backs.end();
      if (tensor.is_output && !is_written) tensor.prepared = true;
    }
}

Result<LoweredGraph> lower_one(GraphPtr graph, const OpTable &ops, const LowerOptions &options, bool nested,
                               bool is_part) {
  LoweredGraph out{.given = graph};
  KILN_ASSIGN(out.graph, flatten(std::move(graph), ops, options));
  KILN_ASSIGN(std::vector<Region> regions, partition(out.graph, options.backend));
  for (Region &region : regions) {
    LoweredRegion &made = out.regions.emplace_back(LoweredRegion{.region = std::move(region)});
    if (made.region.kind != Region::Kind::code) {
      const Node &node = *out.graph->find(made.region.node);
      if (node.op->name == "scan") {
        KILN_ASSIGN(made.turn, lower_turn(*out.graph, node, ops, options, nested));
      }
      continue;
    }
    KILN_ASSIGN(made.lowered, lower(*made.region.graph));
    if (is_part) let_outputs_be_prepared(made.lowered);
    // Nothing is bound to a nested plan: what it makes of constants it makes whenever it runs.
    for (kernel::Tensor &tensor : made.lowered.program.tensors) tensor.prepared &= !nested;
  }
  return out;
}

// Graphs that are lowered, each once.
class GraphLowering {
 public:
  GraphLowering(const OpTable &ops, const LowerOptions &options, const LowerPasses &passes)
      : ops_(ops), options_(options), passes_(passes) {}

  Result<LoweredGraphs> run(const GraphPtr &graph) {
    out_.cut = options_.modes.cut() || !options_.backends.empty() || !refusals_.takes(*graph);
    enter({.graph = graph, .is_region = !out_.cut, .options = options_.region});
    for (size_t i = 0; i < open_.size(); ++i) {
      const Open next = open_[i];
      KILN_ASSIGN(LoweredGraph lowered,
                  out_.cut && !next.owned ? cut(next.graph, ops_, options_, refusals_, offers_) : lower(next));
      lowered.owned = next.owned;
      for (LoweredRegion &region : lowered.regions)
        if (region.region.kind == Region::Kind::program) KILN_TRY(finish_program(region.region));
      for (const LoweredRegion &region : lowered.regions) enter_inner(*lowered.graph, region.region, next);
      out_.graphs.push_back(std::move(lowered));
    }
    return std::move(out_);
  }

 private:
  struct Open {
    GraphPtr graph;
    bool nested = false, owned = false;
    bool is_part = false;    // and not what a node of one carries
    bool is_region = false;  // likewise; passes of stage lower run on it
    std::string name = {};   // of the region
    RegionOptions options = {};
  };

  Result<LoweredGraph> lower(const Open &open) {
    GraphPtr graph = open.graph;
    if (open.is_region) {
      const Where where{open.owned ? str_cat("in region '", open.name, "': ") : "", open.owned,
                        open.owned ? std::optional(open.name) : std::nullopt};
      KILN_ASSIGN(graph, run_lower_passes(passes_, std::move(graph), ops_, where));
      for (const Node &node : graph->nodes())
        if (const std::optional<std::string> why = refusals_.of(*graph, node))
          return invalid(where.text, "a pass of stage lower made node '", node.name, "' [", node.op->name,
                         "], which backend ", options_.backend.name, " does not take: ", *why);
    }
    LowerOptions options = options_;
    options.region = open.options;
    KILN_ASSIGN(LoweredGraph lowered, lower_one(graph, ops_, options, open.nested, open.is_part));
    if (passes_.observe) {
      const std::string part = open.owned || !open.nested ? open.name : str_cat("nested ", out_.graphs.size());
      KILN_TRY(passes_.observe("decompose", part, graph, lowered.graph));
    }
    lowered.given = open.graph;
    lowered.options = open.options;
    return lowered;
  }

  // Runs passes of stage lower on it. Equal ones have one graph.
  Status finish_program(Region &program) {
    const auto [known, is_new] =
        programs_.try_emplace(std::pair(digest_of(*program.graph), program.options.backend_text()));
    if (is_new) {
      const Where where{str_cat("in region '", *program.name, "': "), true, program.name};
      KILN_ASSIGN(known->second, run_lower_passes(passes_, program.graph, ops_, where));
      for (const Node &node : known->second->nodes()) {
        if (!node.op || known->second == program.graph) continue;
        KILN_ASSIGN(const std::optional<std::string> why, offers_.refusal(program.options, known->second, node));
        if (why)
          return invalid(where.text, "a pass of stage lower made node '", node.name, "' [", node.op->name,
                         "], which backend ", program.backend, " does not take: ", *why);
      }
    }
    program.graph = known->second;
    return {};
  }

  void enter_inner(const Graph &graph, const Region &region, const Open &outer) {
    if (region.kind == Region::Kind::part) {
      enter_part({.graph = region.graph,
                  .nested = outer.nested,
                  .owned = true,
                  .is_part = true,
                  .is_region = region.name.has_value(),
                  .name = region.name.value_or(""),
                  .options = region.options});
    } else if (region.kind == Region::Kind::control) {
      for (const auto &[name, nested] : nested_graphs(*graph.find(region.node)))
        enter({.graph = nested, .nested = true, .owned = outer.owned, .options = outer.options});
    }
  }
  void enter(Open graph) {
    const std::tuple key(graph.graph.get(), graph.owned, graph.options);
    const bool is_new = out_.numbers.try_emplace(key, open_.size()).second;
    if (is_new) open_.push_back(std::move(graph));
  }
  // Found by the graph that carries it, which no part owns.
  void enter_part(Open part) {
    const std::tuple by_graph(part.graph.get(), false, options_.region);
    if (out_.numbers.contains(by_graph)) return;  // equal parts may have one graph
    const bool passes_run = part.is_region && !passes_.passes.empty();
    const auto key = std::tuple(digest_of(*part.graph), part.nested, passes_run, part.options);
    const auto [known, is_new] = parts_.try_emplace(key, open_.size());
    out_.numbers[by_graph] = known->second;
    if (is_new) open_.push_back(std::move(part));
  }

  const OpTable &ops_;
  const LowerOptions &options_;
  const LowerPasses &passes_;
  Refusals refusals_{options_.backend};
  const Offers offers_{options_.backends, ops_,
                       [this](GraphPtr graph) { return flatten(std::move(graph), ops_, options_); }};
  // By what they were before passes, and which backend makes them with which options.
  std::map<std::pair<Digest, std::string>, GraphPtr> programs_;
  LoweredGraphs out_;
  std::vector<Open> open_;
  // By graph, whether it is nested, whether it is a region on which passes run, and its options.
  std::map<std::tuple<Digest, bool, bool, RegionOptions>, size_t> parts_;
};

}  // namespace

Result<LoweredGraphs> lower_graphs(const GraphPtr &graph, const OpTable &ops, const LowerOptions &options,
                                   const LowerPasses &passes) {
  return GraphLowering(ops, options, passes).run(graph);
}

Digest digest_of(const LoweredGraphs &graphs) {
  ByteWriter digests;
  for (const LoweredGraph &graph : graphs.graphs) digests.raw(digest_of(*graph.graph).bytes);
  return digest_of(digests.bytes());
}

namespace {

// The turns of a scan as code, if they are one kernel.
Status make_code(const Graph &graph, LoweredRegion &region, const Target &target, const kernel::FuseOptions &options) {
  LoweredTurn &turn = *region.turn;
  KILN_ASSIGN(std::optional<kernel::Fused> fused,
              kernel::fuse_turns(turn.lowered.program, turn.turns, target, options));
  if (!fused) return {};
  region.region.kind = Region::Kind::code;
  region.lowered = std::move(turn.lowered);
  region.fused = std::move(*fused);
  // For messages the kernel is the node's.
  kernel::Program::Def def{.results = region.lowered.outputs, .operands = region.lowered.inputs, .compute = {}};
  const Node &node = *graph.find(region.region.node);
  def.node = node.name;
  def.op = node.op->name;
  region.lowered.program.defs = {std::move(def)};
  return {};
}

}  // namespace

std::set<size_t> LoweredGraphs::reached_from(size_t number) const {
  std::set<size_t> found;
  std::vector<size_t> open{number};
  while (!open.empty()) {
    const size_t next = open.back();
    open.pop_back();
    if (!found.insert(next).second) continue;
    const LoweredGraph &graph = graphs[next];
    for (const LoweredRegion &region : graph.regions) {
      if (region.region.kind == Region::Kind::part) open.push_back(number_of(graph, region.region.graph));
      if (region.region.kind != Region::Kind::control) continue;
      for (const auto &[name, nested] : nested_graphs(*graph.graph->find(region.region.node)))
        open.push_back(number_of(graph, nested));
    }
  }
  return found;
}

Result<uint32_t> fuse(LoweredGraphs &graphs, const Target &target) {
  const auto how = [](const LoweredGraph &graph) {
    return kernel::FuseOptions{.fuse = graph.options.fuse, .ordered = graph.options.ordered()};
  };
  uint32_t materialised = 0;
  for (LoweredGraph &graph : graphs.graphs)
    for (LoweredRegion &region : graph.regions)
      if (region.turn) KILN_TRY(make_code(*graph.graph, region, target, how(graph)));
  const std::set<size_t> runs = graphs.reached_from(0);
  for (size_t number = 0; number < graphs.graphs.size(); ++number)
    if (!runs.contains(number)) graphs.graphs[number].regions.clear();
  for (LoweredGraph &graph : graphs.graphs) {
    for (LoweredRegion &region : graph.regions) {
      if (region.region.kind != Region::Kind::code || region.turn) continue;
      KILN_ASSIGN(region.fused, kernel::fuse(region.lowered.program, target, how(graph)));
      materialised += region.fused.materialised;
    }
  }
  return materialised;
}

}  // namespace kiln
