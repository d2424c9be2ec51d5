// The helpers that lowerings call.
#include "runtime/ops/op.h"

namespace kiln {

std::vector<Expr> LowerContext::axes() const {
  std::vector<Expr> all;
  for (size_t d = 0; d < result.rank(); ++d) all.push_back(axis(d));
  return all;
}

Expr LowerContext::reduce_axis(Expr extent) {
  const auto id = static_cast<uint32_t>(result.rank() + compute.reduce.size());
  compute.reduce.push_back(extent);
  return Expr::axis(id, std::move(extent));
}

int LowerContext::load(size_t operand, std::vector<Expr> index, int valid, uint64_t fill) {
  return body.load(static_cast<uint16_t>(operand), inputs[operand].dtype, std::move(index), valid, fill);
}

int LowerContext::load(size_t operand) {
  const Shape &dims = inputs[operand].dims;
  const size_t added = result.rank() - dims.size();
  std::vector<Expr> index;
  for (size_t d = 0; d < dims.size(); ++d) index.push_back(dims[d].is(1) ? Expr(0) : axis(added + d));
  return load(operand, std::move(index));
}

}  // namespace kiln
