#include "runtime/regions/lower_graphs.h"

#include "runtime/ops/nested.h"
#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

Result<LoweredGraph> lower_one(GraphPtr graph, const OpTable &ops, const LowerOptions &options, bool nested) {
  LoweredGraph out{.given = graph};
  KILN_ASSIGN(graph, inline_calls(std::move(graph), ops));
  KILN_ASSIGN(graph, widen(std::move(graph), ops, options.round_all));
  KILN_ASSIGN(graph, decompose(std::move(graph), ops));
  KILN_ASSIGN(graph, split_concats(std::move(graph)));
  KILN_ASSIGN(out.graph, merge_equal_nodes(std::move(graph)));
  KILN_ASSIGN(std::vector<Region> regions, partition(out.graph, options.backend));
  for (Region &region : regions) {
    LoweredRegion &made = out.regions.emplace_back(LoweredRegion{.region = std::move(region)});
    if (made.region.kind != Region::Kind::code) continue;
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

Result<uint32_t> fuse(LoweredGraphs &graphs, const Target &target, const kernel::FuseOptions &options) {
  uint32_t materialised = 0;
  for (LoweredGraph &graph : graphs.graphs) {
    for (LoweredRegion &region : graph.regions) {
      if (region.region.kind != Region::Kind::code) continue;
      KILN_ASSIGN(region.fused, kernel::fuse(region.lowered.program, target, options));
      materialised += region.fused.materialised;
    }
  }
  return materialised;
}

}  // namespace kiln
