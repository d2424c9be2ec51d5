// The helpers that decompositions call.
#include <utility>

#include "runtime/ops/op.h"

namespace kiln {

Result<ValueId> DecomposeContext::add(std::string_view name, std::vector<ValueId> inputs, AttrMap attrs) {
  const OpSchema *schema = ops.find(name);
  if (!schema) return error(Code::internal, "decomposition of '", op.name, "' needs the unknown op '", name, "'");
  KILN_ASSIGN(uint32_t id, edit.add(schema, inputs, std::move(attrs)));
  return ValueId{id, 0};
}

Result<ValueId> DecomposeContext::scalar(DType dtype, double value) {
  return add("full", {}, {{"value", value}, {"dtype", dtype}, {"shape", AttrValue(Shape{})}});
}

Result<ValueId> DecomposeContext::count(DType dtype, const Dim &value) {
  constexpr int64_t most = int64_t{1} << 53;  // that a number holds
  if (value.is_integer() && value.integer() >= -most && value.integer() <= most)
    return scalar(dtype, static_cast<double>(value.integer()));
  return add("size", {}, {{"value", value}, {"dtype", dtype}});
}

}  // namespace kiln
