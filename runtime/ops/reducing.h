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

// By ranges on several threads: calls body(number of the result, each) for each result; each(visit) calls visit(k) with
// the numbers of the elements of a tensor of `shape` that it is made of, in order.
template <class Body>
Status for_each_group(const ReferenceContext &c, const std::vector<int64_t> &shape, const std::vector<bool> &reduced,
                      Body body) {
  std::vector<int64_t> kept = shape, group = shape;
  for (size_t d = 0; d < shape.size(); ++d) (reduced[d] ? kept : group)[d] = 1;
  const std::vector<int64_t> strides = dense_strides(shape);
  return walk_in_ranges<1>(
      c, kept, {strides},
      [&](size_t result, auto from) {
        body(result, [&](auto visit) {
          walk<1>(group, {strides}, [&](auto at) { visit(static_cast<size_t>(from[0] + at[0])); });
        });
      },
      count_of(group));
}

// A reference kernel from a function of the context and a list of elements: those that one result is made of, in order.
// `of_floats`: of a function that takes nothing else.
template <auto function, bool of_floats = true>
Status reference_of_groups(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const auto fold = [&](auto zero, auto wide) -> Status {
    using Wide = decltype(wide);
    const ReadElements<decltype(zero)> in(x);
    const WriteAny out(c.results[0]);
    return for_each_group(c, x.shape, reduced_dims(c.attrs, x.shape.size()), [&](size_t result, auto each) {
      std::vector<Wide> group;
      each([&](size_t k) { group.push_back(Wide(in[k])); });
      out.set(result, function(c, group));
    });
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
