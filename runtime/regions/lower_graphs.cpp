#include "runtime/regions/lower_graphs.h"

#include <set>

#include "runtime/ops/nested.h"
#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

Result<LoweredGraph> lower_one(GraphPtr graph, const OpTable &ops, const LowerOptions &options, bool nested) {
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
    // Nothing is bound to a nested plan: what it makes of constants it makes whenever it runs.
    for (kernel::Tensor &tensor : made.lowered.program.tensors) tensor.prepared &= !nested;
  }
  return out;
}

}  // namespace

Result<LoweredGraphs> lower_graphs(const GraphPtr &graph, const OpTable &ops, const LowerOptions &options) {
  LoweredGraphs out;
  std::vector<GraphPtr> open{graph};
  out.numbers[graph.get()] = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    KILN_ASSIGN(LoweredGraph lowered, lower_one(open[i], ops, options, /*nested=*/i > 0));
    for (const Node &node : lowered.graph->nodes()) {
      if (!is_control(node)) continue;
      for (const auto &[name, nested] : nested_graphs(node))
        if (out.numbers.try_emplace(nested.get(), open.size()).second) open.push_back(nested);
    }
    out.graphs.push_back(std::move(lowered));
  }
  return out;
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

// Numbers of graphs that the first one runs.
std::set<size_t> running(const LoweredGraphs &graphs) {
  std::set<size_t> found;
  std::vector<size_t> open{0};
  while (!open.empty()) {
    const size_t number = open.back();
    open.pop_back();
    if (!found.insert(number).second) continue;
    for (const LoweredRegion &region : graphs.graphs[number].regions) {
      if (region.region.kind != Region::Kind::control) continue;
      for (const auto &[name, nested] : nested_graphs(*graphs.graphs[number].graph->find(region.region.node)))
        open.push_back(graphs.number_of(nested));
    }
  }
  return found;
}

}  // namespace

Result<uint32_t> fuse(LoweredGraphs &graphs, const Target &target, const kernel::FuseOptions &options) {
  uint32_t materialised = 0;
  for (LoweredGraph &graph : graphs.graphs)
    for (LoweredRegion &region : graph.regions)
      if (region.turn) KILN_TRY(make_code(*graph.graph, region, target, options));
  const std::set<size_t> runs = running(graphs);
  for (size_t number = 0; number < graphs.graphs.size(); ++number)
    if (!runs.contains(number)) graphs.graphs[number].regions.clear();
  for (LoweredGraph &graph : graphs.graphs) {
    for (LoweredRegion &region : graph.regions) {
      if (region.region.kind != Region::Kind::code || region.turn) continue;
      KILN_ASSIGN(region.fused, kernel::fuse(region.lowered.program, target, options));
      materialised += region.fused.materialised;
    }
  }
  return materialised;
}

}  // namespace kiln
