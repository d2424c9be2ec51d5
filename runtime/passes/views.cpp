#include "runtime/passes/views.h"

#include <vector>

#include "runtime/ops/op.h"

namespace kiln {

bool is_identity_view(const Graph &graph, const Node &node) {
  if (!(node.op->flags & op_flags::view) || node.op->flags & op_flags::registered) return false;
  const TensorType &operand = graph.type(node.inputs[0]), &result = node.results[0];
  if (!operand.same_value_type(result)) return false;
  if (node.op->name == "reshape" || node.op->name == "expand") return true;
  std::vector<Expr> axes;
  for (uint32_t d = 0; d < result.rank(); ++d) axes.push_back(Expr::axis(d, result.dims[d]));
  const Op &op = op_of(node);
  ViewContext context{op, operand, result, node.attrs, axes, {}};
  if (!op.view(context).ok()) return false;
  for (size_t d = 0; d < axes.size(); ++d)
    if (!result.dims[d].is(1) && context.operand_index[d] != axes[d]) return false;
  return true;
}

}  // namespace kiln
