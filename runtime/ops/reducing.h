// What the families of ops share that reduce some or all dims: their attributes, shapes and samples.
#pragma once
#include "runtime/ops/family.h"

namespace kiln::ops {

// "dims" and "keepdim".
const std::vector<AttrDef> &reduce_attrs();
std::vector<AttrDef> reduce_attrs_and(std::vector<AttrDef> more);
// The result has x's dtype, without the dims that "dims" names.
Status infer_reduce(InferContext &c);
// Which of `rank` dims are reduced: an empty list names all.
std::vector<bool> reduced_dims(const AttrMap &attrs, size_t rank);
Shape reduced_shape(const Shape &dims, const std::vector<bool> &reduced, bool keepdim);
// Strides that lead from indices of x to elements of the result: 0 along reduced dims.
std::vector<int64_t> result_strides(std::span<const int64_t> shape, const std::vector<bool> &reduced);

// A reference kernel from a function of the context and a list of elements: those that one result is made of, in order.
// `of_floats`: of a function that takes nothing else.
template <auto function, bool of_floats = true>
Status reference_of_groups(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  const auto fold = [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    using Wide = decltype(wide);
    std::vector<std::vector<Wide>> groups(static_cast<size_t>(y.size()));
    size_t k = 0;
    walk<1>(x.shape, {result_strides(x.shape, reduced_dims(c.attrs, x.shape.size()))},
            [&](auto at) { groups[static_cast<size_t>(at[0])].push_back(Wide(elements<T>(x)[k++])); });
    for (size_t g = 0; g < groups.size(); ++g) {
      const auto value = function(c, groups[g]);
      if (y.is_float())
        y.f[g] = static_cast<double>(value);
      else
        y.i[g] = static_cast<int64_t>(value);
    }
    return {};
  };
  if constexpr (of_floats)
    return with_wide(x, [&](auto wide) { return fold(double{}, wide); });
  else
    return dispatch_wide(x, fold);
}

// A record of an op of one operand `x` of one of `types`.
Op reduction(std::string_view name, std::string_view doc, DTypes types, std::vector<AttrDef> attrs,
             Status (*infer)(InferContext &), OpMeaning meaning);

// All and some dims, of f32.
void reduction_samples(SampleSink &out);

}  // namespace kiln::ops
