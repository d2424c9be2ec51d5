// What ops share that know numbers in steps of a scale.
#pragma once
#include "runtime/ops/family.h"

namespace kiln::ops {

inline constexpr DTypes stored_types = dtypes(DType::i8, DType::u8);

// All operands after the first, scales and zero points, and the attributes "axis" and "group", which say what floats of
// `shape` share a scale; `name` is what an error calls these.
Status check_scaling(InferContext &c, const Shape &shape, std::string_view name);
// Operand `input`, the scales or the zero points, as the float at `at` has it.
int load_scale(LowerContext &c, size_t input, std::vector<Expr> at, DType as);
// Where the scale of element k of floats of `shape` lies.
size_t scale_of(const ReferenceContext &c, std::span<const int64_t> shape, int64_t k);

inline ArgDef zeros_arg() {
  return {"zeros", "which number stands for 0: of scales' shape, one number a byte; 0 without it", stored_types,
          Arity::optional, /*same_dtype=*/false};
}
inline AttrDef axis_attr(std::string_view doc) {
  return {.name = "axis", .doc = doc, .kind = AttrKind::i64, .fallback = 0};
}
inline AttrDef group_attr() {
  return {.name = "group",
          .doc = "how many neighbours along axis share a scale; 0: all of an index do, whatever else theirs is",
          .kind = AttrKind::i64,
          .fallback = 0};
}

}  // namespace kiln::ops
