// What the files of pooling share: reference kernels, samples, records.
#pragma once
#include <array>

#include "runtime/ops/composer.h"
#include "runtime/ops/windows.h"

namespace kiln::ops {

// The windows of a pool whose sizes attributes tell.
struct PoolWindow {
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil_mode, counts_padding;
  explicit PoolWindow(const AttrMap &attrs);
  Dim extent(size_t d) const { return window_extent(kernel[d], dilation[d]); }
  double size() const;  // in elements
  // Whether each window has the same divisor.
  bool is_uniform() const;
};
std::vector<AttrDef> pool_attrs(size_t n, std::initializer_list<AttrDef> more);
AttrDef pool_dilation();
AttrDef pool_counts_padding();
// Checks these attributes; what they make of x's dims.
Result<Shape> pooled_shape(InferContext &c, Shape x);

// How many elements of dim d the window at `at` counts, of expressions and of integers.
template <class N>
N counted(const PoolWindow &window, size_t d, const N &at, const N &size) {
  using std::max, std::min;
  const N begin = at * window.stride[d] - window.padding[d];
  const N end = min(begin + window.kernel[d], size + window.padding[d]);
  return window.counts_padding ? end - begin : min(end, size) - max(begin, N(0));
}

// The elements of x's space that a result element is made of, in row-major order, and what their sum is divided by.
struct Pooled {
  std::vector<int64_t> places;
  int64_t divisor = 1;
};
// Folds what `pooled_at` gives for each place in the result's space. `largest` also writes the place of the largest to
// a second result; `norm` reads the attribute "p".
enum class Pooling { largest, sum, mean, norm };
Status reference_of_pools(ReferenceContext &c, Pooling pooling,
                          Pooled (*pooled_at)(const ReferenceContext &, const std::vector<int64_t> &at));

// Of integers, as of expressions.
inline int64_t floor_div(int64_t a, int64_t b) { return a / b; }
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Where part i of `parts` that divide `size` elements begins and ends: floor(i size / parts), ceil((i + 1) size /
// parts). Parts overlap where they do not divide the elements; element k is in those that are part k of `size` that
// divide `parts` elements.
template <class N>
std::array<N, 2> part_of(const N &i, const N &size, const N &parts) {
  return {floor_div(i * size, parts), ceil_div((i + 1) * size, parts)};
}
// The same in each dim of space.
Pooled part_at(const std::vector<int64_t> &at, const std::vector<int64_t> &size, const std::vector<int64_t> &parts);

// A decomposition: of zeros of `shape`, what the op `scatter` makes with `values` at their indices, each in its plane,
// whose dims of space count as one.
ValueId scattered(Composer &g, std::string_view scatter, const TensorType &values_type, const Shape &shape,
                  ValueId index, ValueId values);

// [1 or 2, 2 or 3, size, size + 1, ...], with fewer planes of more dims.
Shape planes(size_t n, int64_t size);
// [n, 2, w, 5, ...]
Sample symbolic_sample(size_t n, AttrMap attrs);

// A record of an op of operand x, whose dims of space are pooled.
Op pool_record(std::string_view name, std::string_view doc, DTypes types, size_t n, std::vector<AttrDef> attrs,
               Status (*infer)(InferContext &), OpMeaning meaning);

}  // namespace kiln::ops
