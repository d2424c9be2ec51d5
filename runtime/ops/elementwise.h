// What the families of ops that work element by element share: reference kernels of a function, and samples.
#pragma once
#include "runtime/ops/family.h"

namespace kiln::ops {

// Walks the operands' elements, one to three, which are broadcast together, and stores what the function makes of the
// context and them. `Wide` is what it gets them as.
template <auto function, class T, class Wide>
Status walk_elements(NativeContext &c) {
  RefTensor &y = c.results[0];
  const WriteAny out(y);
  const auto strides = [&](size_t operand) { return broadcast_strides(c.inputs[operand]->shape, y.shape); };
  const ReadElements<T> x0(*c.inputs[0]);
  const auto element = [](const ReadElements<T> &x, int64_t at) { return Wide(x[static_cast<size_t>(at)]); };
  constexpr int64_t work = 8;  // a function takes longer than an element's move
  if constexpr (std::is_invocable_v<decltype(function), ReferenceContext &, Wide>) {
    return walk_in_ranges<1>(
        c, y.shape, {strides(0)}, [&](size_t k, auto at) { out.set(k, function(c, element(x0, at[0]))); }, work);
  } else {
    const ReadElements<T> x1(*c.inputs[1]);
    if constexpr (std::is_invocable_v<decltype(function), ReferenceContext &, Wide, Wide>) {
      return walk_in_ranges<2>(
          c, y.shape, {strides(0), strides(1)},
          [&](size_t k, auto at) { out.set(k, function(c, element(x0, at[0]), element(x1, at[1]))); }, work);
    } else {
      const ReadElements<T> x2(*c.inputs[2]);
      return walk_in_ranges<3>(
          c, y.shape, {strides(0), strides(1), strides(2)},
          [&](size_t k, auto at) {
            out.set(k, function(c, element(x0, at[0]), element(x1, at[1]), element(x2, at[2])));
          },
          work);
    }
  }
}
// Reference kernels from such a function. Of floats, or of integers, alone: for functions that have a meaning there
// only. Floats are double, and long double of f64 unless they are to be computed with in their own type (where one
// operation alone is rounded, which a wider one would round twice); integers have 64 bits and the dtype's sign.
enum class In { wide, own };
template <auto function, In in = In::wide>
Status reference_of_floats(NativeContext &c) {
  if constexpr (in == In::own)
    return walk_elements<function, double, double>(c);
  else
    return with_wide(*c.inputs.back(), [&](auto wide) { return walk_elements<function, double, decltype(wide)>(c); });
}
template <auto function>
Status reference_of_integers(NativeContext &c) {
  return dtype_info(c.inputs.back()->dtype).is_signed ? walk_elements<function, int64_t, int64_t>(c)
                                                      : walk_elements<function, uint64_t, uint64_t>(c);
}
template <auto function, In in = In::wide>
Status reference_of_numbers(NativeContext &c) {
  return c.inputs.back()->is_float() ? reference_of_floats<function, in>(c) : reference_of_integers<function>(c);
}
// The same where the second operand divides: an integer 0 is an error of the call.
Status require_divisors(const ReferenceContext &c);
template <auto function, In in = In::wide>
Status reference_of_quotients(NativeContext &c) {
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

// One of operand `x`, of `x_doc`, whose elements are moved.
Op moving(std::string_view name, std::string_view doc, std::string_view x_doc, std::vector<AttrDef> attrs,
          Status (*infer)(InferContext &), OpMeaning meaning);

}  // namespace kiln::ops
