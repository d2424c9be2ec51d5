// What the families of ops share: dtype sets, inference, lowering and reference loops that several records use. For
// the .cpp files of this folder alone.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/ops/op.h"
#include "runtime/ops/samples.h"

namespace kiln::ops {

// ---- the families: each is the table of one .cpp file, and registry.cpp lists them all
std::span<const Op> creation_ops();
std::span<const Op> unary_ops();
std::span<const Op> activation_ops();
std::span<const Op> binary_ops();
std::span<const Op> comparison_ops();
std::span<const Op> reduce_ops();
std::span<const Op> view_ops();
std::span<const Op> reshape_ops();
std::span<const Op> joining_ops();
std::span<const Op> indexing_ops();
std::span<const Op> matmul_ops();
std::span<const Op> convolution_ops();
std::span<const Op> pool_ops();
std::span<const Op> norm_ops();
std::span<const Op> softmax_ops();
std::span<const Op> attention_ops();
std::span<const Op> rope_ops();
std::span<const Op> nested_ops();

// ---- the dtypes that are implemented
inline constexpr DTypes float_types = dtypes(DType::f32);
inline constexpr DTypes numeric_types = dtypes(DType::f32, DType::i64);
inline constexpr DTypes any_type = dtypes(DType::f32, DType::i64, DType::boolean);

// ---- inference
// The result has the type of the first input.
Status infer_same(InferContext &c);
// Two or more inputs are broadcast together; the result has the dtype of the last.
Status infer_broadcast(InferContext &c);
// `dtype` names an attribute's value: an error unless it is one of `set`.
Status require_dtype(const InferContext &c, DType dtype, DTypes set);
// Ok if small <= large, or if that can only be told at a call (then recorded); `what` says it: "end <= dim 1".
Status require_at_most(InferContext &c, const Dim &small, const Dim &large, std::string_view what);
// No dim may be negative.
Status require_shape(InferContext &c, std::span<const Dim> shape);
Status require_rank(const InferContext &c, size_t input, size_t rank);
// Which of `rank` dims the attribute "dims" names; none may be named twice.
Result<std::vector<bool>> distinct_dims(const InferContext &c, size_t rank);
// An attribute that is a list of exactly `count` integers, all at least `minimum`.
Status require_integers(const InferContext &c, std::string_view attr, size_t count, int64_t minimum);
// How many windows of `kernel` fit, `stride` apart, into `size` with `padding` at both ends.
Result<Dim> window_count(InferContext &c, const Dim &size, const Dim &kernel, int64_t stride, int64_t padding,
                         std::string_view what);

// ---- attributes that inference has accepted
size_t normal_axis(int64_t axis, size_t rank);  // negative ones count from the end
// Which of `rank` dims a list names.
std::vector<bool> named_dims(std::span<const int64_t> dims, size_t rank);

// ---- lowering
// The truth of 0 <= index < size as a value of the body, or -1 where bounds prove it: `valid` of a load.
int inside(kernel::BodyBuilder &body, const Expr &index, const Expr &size);
// Both, where -1 is always true.
int both(kernel::BodyBuilder &body, int a, int b);

// ---- reference kernels
inline constexpr int64_t i64_min = std::numeric_limits<int64_t>::min(), i64_max = std::numeric_limits<int64_t>::max();
inline constexpr double infinity = std::numeric_limits<double>::infinity();
// Integers wrap.
inline int64_t wrap_add(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) + uint64_t(b)); }
inline int64_t wrap_sub(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) - uint64_t(b)); }
inline int64_t wrap_mul(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) * uint64_t(b)); }

std::vector<int64_t> dense_strides(std::span<const int64_t> shape);
// Strides that read a dense `from` at the indices of `to`, as numpy broadcasts it.
std::vector<int64_t> broadcast_strides(std::span<const int64_t> from, std::span<const int64_t> to);
int64_t count_of(std::span<const int64_t> shape);

// Calls body(offsets) for each index of `shape`, in row-major order; offsets[k] is the sum of index * strides[k].
template <size_t N, class Body>
void walk(std::span<const int64_t> shape, const std::array<std::vector<int64_t>, N> &strides, Body body) {
  std::vector<int64_t> index(shape.size(), 0);
  std::array<int64_t, N> offsets{};
  for (int64_t left = count_of(shape); left > 0; --left) {
    body(offsets);
    for (size_t d = shape.size(); d-- > 0;) {
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][d];
      if (++index[d] < shape[d]) break;
      for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][d] * shape[d];
      index[d] = 0;
    }
  }
}

// The elements of a tensor as T: double for float dtypes, int64_t for the others.
template <class T>
const std::vector<T> &elements(const RefTensor &t) {
  if constexpr (std::is_same_v<T, double>)
    return t.f;
  else
    return t.i;
}
template <class T>
std::vector<T> &elements(RefTensor &t) {
  if constexpr (std::is_same_v<T, double>)
    return t.f;
  else
    return t.i;
}
// Calls fn with a zero of the tensor's element type: dispatch(x, [&](auto zero) { using T = decltype(zero); ... }).
template <class Fn>
auto dispatch(const RefTensor &t, Fn fn) {
  return t.is_float() ? fn(double{}) : fn(int64_t{});
}
// Copies the input at broadcast indices to the result.
void copy_broadcast(const RefTensor &from, RefTensor &to);

}  // namespace kiln::ops
