// What convolutions share with those that are transposed. For the files of this folder.
#pragma once
#include "runtime/ops/composer.h"
#include "runtime/ops/windows.h"

namespace kiln::ops {

// The ranks of the first two operands, and the attributes stride, padding, dilation and groups.
Status require_steps(InferContext &c, size_t n);
// The same of x and weight; the sums' dtype.
Result<DType> infer_operands(InferContext &c, size_t n);
// A bias, if there is one; `what` says that its length is `channels`.
Status infer_bias(InferContext &c, const Dim &channels, std::string_view what);
// y, and the bias of a node that has one.
ValueId add_bias(const DecomposeContext &c, Composer &g, ValueId y);

AttrDef groups_attr();
// A record of an op of x, weight and, if so, a bias.
Op convolution(std::string_view name, std::string_view doc, std::string_view weight_doc, std::vector<AttrDef> attrs,
               size_t n, bool has_bias, Status (*infer)(InferContext &), OpMeaning meaning);

// ---- reference kernels

// A product of the sum that a result element is: places in x's space and in the window; below 0: a zero.
struct Tap {
  int64_t x, weight;
};
// Sums what `taps_at` gives for each place in the result's space, over the channels of a group. The weight is
// [O, C / groups, window], or [C, O / groups, window].
Status reference_of_taps(ReferenceContext &c,
                         std::vector<Tap> (*taps_at)(const ReferenceContext &, const std::vector<int64_t> &at),
                         bool weight_begins_with_inputs);

// ---- samples

// Shapes with one dim of space, which is repeated, a bit longer each time; only the first keeps a symbol.
Sample convolution_sample(const char *name, const Shape &x, const Shape &weight, size_t n, AttrMap attrs,
                          std::map<std::string, int64_t> sizes);
// The same of bytes without a sign by bytes with one.
Sample convolution_of_bytes(const Shape &x, const Shape &weight, size_t n);
// Gives each sample a bias: of weight dim 0 the length, of dim 1 a part in `groups` of it. Adds one without.
void add_biases(SampleSink &out, size_t dim);

}  // namespace kiln::ops
