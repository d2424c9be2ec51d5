// What the families of ops that work element by element share: reference kernels of a function, and samples.
#pragma once
#include "runtime/ops/family.h"

namespace kiln::ops {

// An element of a float dtype, or of another.
union Number {
  double f;
  int64_t i;
};
// Makes y[k] of the elements k of the operands, of `count` of them; as a float if `to_float`.
using BlockFunction = void (*)(ReferenceContext &c, const std::array<const Number *, 3> &x, Number *y, size_t count,
                               bool to_float);
// Of operands that are broadcast together, one to three, whose elements are floats, or not. The loops are there once,
// whatever the functions: for nearly all of them take longer than a call.
Status walk_blocks(ReferenceContext &c, size_t operands, bool of_floats, BlockFunction function);

// Stores what the function makes of the context and elements. `Wide` is what it gets them as.
template <auto function, class T, class Wide>
Status walk_elements(ReferenceContext &c) {
  constexpr size_t operands = std::is_invocable_v<decltype(function), ReferenceContext &, Wide>         ? 1
                              : std::is_invocable_v<decltype(function), ReferenceContext &, Wide, Wide> ? 2
                                                                                                        : 3;
  return walk_blocks(
      c, operands, std::is_same_v<T, double>,
      [](ReferenceContext &context, const std::array<const Number *, 3> &x, Number *y, size_t count, bool to_float) {
        const auto element = [&](size_t operand, size_t k) {
          if constexpr (std::is_same_v<T, double>)
            return Wide(x[operand][k].f);
          else
            return Wide(static_cast<T>(x[operand][k].i));
        };
        for (size_t k = 0; k < count; ++k) {
          const auto value = [&] {
            if constexpr (operands == 1)
              return function(context, element(0, k));
            else if constexpr (operands == 2)
              return function(context, element(0, k), element(1, k));
            else
              return function(context, element(0, k), element(1, k), element(2, k));
          }();
          if (to_float)
            y[k].f = static_cast<double>(value);
          else
            y[k].i = static_cast<int64_t>(value);
        }
      });
}
// Reference kernels from such a function. Of floats, or of integers, alone: for functions that have a meaning there
// only. Floats are double, and long double of f64 unless they are to be computed with in their own type (where one
// operation alone is rounded, which a wider one would round twice); integers have 64 bits and the dtype's sign.
enum class In { wide, own };
template <auto function, In in = In::wide>
Status reference_of_floats(ReferenceContext &c) {
  if constexpr (in == In::own)
    return walk_elements<function, double, double>(c);
  else
    return with_wide(*c.inputs.back(), [&](auto wide) { return walk_elements<function, double, decltype(wide)>(c); });
}
template <auto function>
Status reference_of_integers(ReferenceContext &c) {
  return dtype_info(c.inputs.back()->dtype).is_signed ? walk_elements<function, int64_t, int64_t>(c)
                                                      : walk_elements<function, uint64_t, uint64_t>(c);
}
template <auto function, In in = In::wide>
Status reference_of_numbers(ReferenceContext &c) {
  return c.inputs.back()->is_float() ? reference_of_floats<function, in>(c) : reference_of_integers<function>(c);
}
// The same where the second operand divides: an integer 0 is an error of the call.
Status require_divisors(const ReferenceContext &c);
template <auto function, In in = In::wide>
Status reference_of_quotients(ReferenceContext &c) {
  KILN_TRY(require_divisors(c));
  return reference_of_numbers<function, in>(c);
}

// Shapes of one operand, then the edges of the float domain; random values in [low, high).
void unary_samples(SampleSink &out, double low, double high, const std::vector<float> &edges);
// The whole line; what is near to halves and integers.
void samples_line(SampleSink &out);
void samples_rounding(SampleSink &out);
// Shapes of two operands that are broadcast; all pairs of zeros, infinities and NaN.
void binary_samples(SampleSink &out, double low, double high);
void edge_pairs(SampleSink &out);
// Two operands of i64, and what overflows.
void integer_pairs(SampleSink &out);
// Shapes of two operands of which one divides the other: integers without 0.
void samples_divide(SampleSink &out);

// A record of an op of one operand `x` of one of `types`, with a result of its type.
Op unary(std::string_view name, std::string_view doc, DTypes types, OpMeaning meaning, std::vector<AttrDef> attrs = {});
// The same with another inference.
Op with_infer(Op op, Status (*infer)(InferContext &));
// One of two that are broadcast, `a` and `b`, of one dtype.
Op binary(std::string_view name, std::string_view doc, DTypes types, OpMeaning meaning);
Op commuting(Op op);  // the operands of the two may change places

// One of operand `x`, of `x_doc`, whose elements are moved.
Op moving(std::string_view name, std::string_view doc, std::string_view x_doc, std::vector<AttrDef> attrs,
          Status (*infer)(InferContext &), OpMeaning meaning);

}  // namespace kiln::ops
