#include "runtime/exec/op_step.h"

namespace kiln {

std::unique_ptr<OpStep> OpStep::of(const Graph &graph) {
  const Node *node = node_of(graph);
  const RegisteredOp *op = node ? registered(*node->op) : nullptr;
  return op && op->runs ? std::make_unique<OpStep>(graph, *node) : nullptr;
}

Status OpStep::resize(const Signature &signature, const ResolvedSizes &sizes) {
  arrays_ = arrays_of(signature, sizes);
  told_ = false;
  return {};
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
