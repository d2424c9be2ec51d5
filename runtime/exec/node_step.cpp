#include "runtime/exec/node_step.h"

#include <algorithm>

namespace kiln {

std::vector<RunArray> arrays_of(const Signature &signature, const ResolvedSizes &sizes) {
  std::vector<RunArray> arrays;
  for (uint32_t slot = 0; slot < signature.count(); ++slot) {
    const ResolvedArgument &a = sizes.argument(slot);
    arrays.push_back({a.dtype, {a.dims.begin(), a.dims.end()}});
  }
  return arrays;
}

const Node *node_of(const Graph &graph) {
  const Node *only = nullptr;
  for (const Node &node : graph.nodes()) {
    if (only && node.op) return nullptr;
    if (node.op) only = &node;
  }
  if (!only) return nullptr;
  const Node &node = *only;
  const bool takes_inputs =
      std::ranges::equal(node.inputs, graph.inputs(), {}, {}, [](uint32_t id) { return ValueId{id, 0}; });
  bool gives_outputs = graph.outputs().size() == node.results.size() && graph.parameters().empty();
  for (uint32_t k = 0; gives_outputs && k < node.results.size(); ++k)
    gives_outputs = graph.outputs()[k].value == ValueId{node.id, k};
  return takes_inputs && gives_outputs ? &node : nullptr;
}

}  // namespace kiln
