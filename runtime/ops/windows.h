// What ops share that slide windows over space: 1, 2 or 3 dims behind those of batch and channel. For the files of this
// folder.
#pragma once
#include "runtime/ops/family.h"

namespace kiln::ops {

// How many dims of space the op has: the digit in its name.
size_t space_of(const OpSchema &op);
// "[N, C, W]", "[N, C, H, W]" or "[N, C, D, H, W]".
std::string_view layout_doc(size_t n);

// ---- attributes: lists of n integers
AttrDef stride_attr(size_t n);
AttrDef dilation_attr(size_t n);
// What lies around a dim. As an attribute: n numbers, or 2 n.
struct Ends {
  int64_t before = 0, after = 0;
};
AttrDef padding_attr(size_t n, std::string_view doc);
Status require_padding(const InferContext &c, size_t n);
std::vector<Ends> padding_of(const AttrMap &attrs, size_t n);
AttrValue padding_as(std::span<const Ends> ends);

// How many elements a window of `count` spans that are `step` apart.
Dim window_extent(const Dim &count, int64_t step);
// For errors: " by size" of a dim of x that this attribute of the op tells, and "". And "the number of windows by
// kernel, stride and padding", which are those of the op's attributes that tell it.
std::string_view by_size(const OpSchema &op);
std::string windows_by(const OpSchema &op);
// How many windows that span `extent` fit, `stride` apart, into `size`, which is `what`, and the padding at its ends.
Result<Dim> window_count(InferContext &c, const Dim &size, const Dim &extent, int64_t stride, Ends padding,
                         std::string_view what);

// Of dims with these extents, in row-major order, the index of element k.
std::vector<Expr> unflatten(const Expr &k, std::span<const Dim> extents);
std::vector<int64_t> unflatten(int64_t k, std::span<const int64_t> extents);
// Where an index lies in dims of `shape`, or -1.
int64_t place_in(std::span<const int64_t> index, std::span<const int64_t> shape);

// For reference kernels: Keys' cubic filter at distance u >= 0, which is 1 at 0, and 0 at the other integers and from 2
// on. R. G. Keys, "Cubic convolution interpolation for digital image processing", 1981; `a` is its slope at 1.
double keys_cubic(double u, double a);

// ---- attributes of samples
AttrValue each(size_t n, int64_t value);  // n times
AttrValue uneven_ends(size_t n);          // a padding: [0, 2, 1, 2, ...]

}  // namespace kiln::ops
