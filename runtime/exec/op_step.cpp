#include "runtime/exec/op_step.h"

#include <algorithm>

namespace kiln {

std::unique_ptr<OpStep> OpStep::of(const Graph &graph) {
  const Node *only = nullptr;
  for (const Node &node : graph.nodes()) {
    if (only && node.op) return nullptr;
    if (node.op) only = &node;
  }
  if (!only) return nullptr;
  const Node &node = *only;
  const RegisteredOp *op = registered(*node.op);
  if (!op || !op->runs) return nullptr;
  const bool takes_inputs =
      std::ranges::equal(node.inputs, graph.inputs(), {}, {}, [](uint32_t id) { return ValueId{id, 0}; });
  bool gives_outputs = graph.outputs().size() == node.results.size() && graph.parameters().empty();
  for (uint32_t k = 0; gives_outputs && k < node.results.size(); ++k)
    gives_outputs = graph.outputs()[k].value == ValueId{node.id, k};
  return takes_inputs && gives_outputs ? std::make_unique<OpStep>(graph, node) : nullptr;
}

void OpStep::resize(const Signature &signature, const ResolvedSizes &sizes) {
  arrays_.clear();
  for (uint32_t slot = 0; slot < signature.count(); ++slot) {
    const ResolvedArgument &a = sizes.argument(slot);
    arrays_.push_back({a.dtype, {a.dims.begin(), a.dims.end()}});
  }
  told_ = false;
}

Status OpStep::run(std::span<void *const> data) {
  if (!run_) {
    std::vector<TensorType> types;
    for (const ValueId input : node_.inputs) types.push_back(graph_.type(input));
    KILN_ASSIGN(run_, registered(*node_.op)->functions->open(node_, std::move(types)));
  }
  if (!told_) run_->resize(arrays_);
  told_ = true;
  return run_->run(data);
}

}  // namespace kiln
