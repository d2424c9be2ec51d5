// What reference kernels share: numbers, walks over indices, and results that are made by ranges on several threads.
// For the .cpp files of this folder alone.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "runtime/ops/element_access.h"
#include "runtime/ops/op.h"

namespace kiln::ops {

// ---- numbers: integers have 64 bits, of which run_reference() keeps what the dtype has
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr int64_t i64_min = std::numeric_limits<int64_t>::min(), i64_max = std::numeric_limits<int64_t>::max();
// T is double, or a 64-bit integer, which wraps.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) + uint64_t(b));
  return a + b;
}
template <class T>
T sub(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) - uint64_t(b));
  return a - b;
}
template <class T>
T mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) * uint64_t(b));
  return a * b;
}
template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}
// The larger of a and b if so wanted, else the smaller; NaN if either is, and -0 is less than +0.
template <bool is_larger, class T>
T extreme(T a, T b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  if constexpr (std::is_floating_point_v<T>)
    if (a == b) return std::signbit(a) == is_larger ? b : a;
  return (a < b) == is_larger ? b : a;
}
template <class T>
T larger(T a, T b) {
  return extreme<true>(a, b);
}
template <class T>
T smaller(T a, T b) {
  return extreme<false>(a, b);
}
// A float as an element of an integer dtype or bool, as RefTensor::i holds it: as `convert` says.
inline int64_t to_integer(double value, DType to) { return static_cast<int64_t>(kernel::immediate_of(to, value)); }
inline int64_t least_of(DType dtype) { return to_integer(-infinity, dtype); }
inline int64_t largest_of(DType dtype) { return to_integer(infinity, dtype); }

// What is said of an index that is not 0 <= index < size.
Status out_of_range(int64_t index, int64_t size);

// ---- walks
std::vector<int64_t> dense_strides(std::span<const int64_t> shape);
// Strides that read a dense `from` at the indices of `to`, as numpy broadcasts it.
std::vector<int64_t> broadcast_strides(std::span<const int64_t> from, std::span<const int64_t> to);
int64_t count_of(std::span<const int64_t> shape);

// Calls body(k, offsets) for the indices of `shape` from number `begin` to before `end`, in row-major order; offsets[s]
// is the sum of index * strides[s].
template <size_t N, class Body>
void walk_range(std::span<const int64_t> shape, const std::array<std::vector<int64_t>, N> &strides, int64_t begin,
                int64_t end, Body body) {
  if (begin >= end) return;
  std::vector<int64_t> index(shape.size(), 0);
  std::array<int64_t, N> offsets{};
  int64_t rest = begin;
  for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
    index[d] = rest % shape[d];
    for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][d] * index[d];
  }
  for (int64_t number = begin; number < end; ++number) {
    body(static_cast<size_t>(number), offsets);
    for (size_t d = shape.size(); d-- > 0;) {
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][d];
      if (++index[d] < shape[d]) break;
      for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][d] * shape[d];
      index[d] = 0;
    }
  }
}

// Of all indices.
template <size_t N, class Body>
void walk(std::span<const int64_t> shape, const std::array<std::vector<int64_t>, N> &strides, Body body) {
  walk_range<N>(shape, strides, 0, count_of(shape), [&](size_t, const auto &offsets) { body(offsets); });
}
// Of all indices, by ranges on several threads, where what the body does for each is independent.
template <size_t N, class Body>
Status walk_in_ranges(const ReferenceContext &c, std::span<const int64_t> shape,
                      const std::array<std::vector<int64_t>, N> &strides, Body body, int64_t work = 1) {
  return c.for_ranges(count_of(shape), work, [&](int64_t begin, int64_t end) -> Status {
    walk_range<N>(shape, strides, begin, end, body);
    return {};
  });
}

// Calls body(first) for each line along a dim, with its first element's number; and how far apart the next ones are.
template <class Body>
void for_each_line(std::span<const int64_t> shape, size_t dim, Body body) {
  std::vector<int64_t> lines(shape.begin(), shape.end());
  lines[dim] = std::min<int64_t>(lines[dim], 1);
  walk<1>(lines, {dense_strides(shape)}, [&](auto at) { body(static_cast<size_t>(at[0])); });
}
inline size_t step_along(std::span<const int64_t> shape, size_t dim) {
  return static_cast<size_t>(dense_strides(shape)[dim]);
}
// By ranges on several threads: calls body(line, the number of its first element) for each line of at least one
// element; the lines are numbered in order. `work`: about what each of its elements takes.
template <class Body>
Status walk_lines(const ReferenceContext &c, std::span<const int64_t> shape, size_t dim, Body body, int64_t work = 1) {
  std::vector<int64_t> lines(shape.begin(), shape.end());
  lines[dim] = std::min<int64_t>(lines[dim], 1);
  return walk_in_ranges<1>(
      c, lines, {dense_strides(shape)}, [&](size_t line, auto at) { body(line, static_cast<size_t>(at[0])); },
      shape[dim] * work);
}

// ---- elements
// Calls fn with a zero of the tensor's element type: dispatch(x, [&](auto zero) { using T = decltype(zero); ... }).
template <class Fn>
auto dispatch(const RefTensor &t, Fn fn) {
  if (t.is_float()) return fn(double{});
  return dtype_info(t.dtype).is_signed ? fn(int64_t{}) : fn(uint64_t{});
}
// The same with a zero of the type that sums and functions are computed in, to be rounded once, when they are stored:
// long double for f64. (A single sum or product of two is rounded rightly in its own type, and twice in a wider one.)
template <class Fn>
auto dispatch_wide(const RefTensor &t, Fn fn) {
  if (t.dtype == DType::f64) return fn(double{}, static_cast<long double>(0));
  return dispatch(t, [&](auto zero) { return fn(zero, zero); });
}
// The second of these for what takes floats alone: with_wide(x, [&](auto zero) { using Wide = decltype(zero); ... }).
template <class Fn>
auto with_wide(const RefTensor &t, Fn fn) {
  return t.dtype == DType::f64 ? fn(static_cast<long double>(0)) : fn(double{});
}
// The elements of x, converted to a dtype whose elements are T.
template <class T>
class Converted {
 public:
  Converted(const RefTensor &x, DType to)
      : is_float_(x.is_float()), is_signed_(dtype_info(x.dtype).is_signed), to_(to), f_(x), i_(x) {}
  T operator[](size_t k) const {
    if (!is_float_) return is_signed_ ? static_cast<T>(i_[k]) : static_cast<T>(static_cast<uint64_t>(i_[k]));
    return std::is_integral_v<T> ? static_cast<T>(to_integer(f_[k], to_)) : static_cast<T>(f_[k]);
  }

 private:
  bool is_float_, is_signed_;
  DType to_;
  ReadElements<double> f_;
  ReadElements<int64_t> i_;
};
// `count` elements of x from number `first` on, `step` apart.
template <class T>
std::vector<T> line_at(const ReadElements<T> &x, size_t first, size_t step, int64_t count) {
  std::vector<T> line(static_cast<size_t>(count));
  for (size_t j = 0; j < line.size(); ++j) line[j] = x[first + j * step];
  return line;
}

// ---- results
// By ranges on several threads: element k of result 0, a T, is value(k). `work`: about how many elements each takes.
template <class T, class Value>
Status make_each(const ReferenceContext &c, Value value, int64_t work = 1) {
  const WriteElements<T> out(c.results[0]);
  return c.for_ranges(c.results[0].size(), work, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t k = begin; k < end; ++k) out.set(static_cast<size_t>(k), static_cast<T>(value(k)));
    return {};
  });
}
// The same of an element of x, of number place(k): an int64_t, or a Result of one.
template <class Place>
Status pick_each(const ReferenceContext &c, const RefTensor &x, Place place) {
  return dispatch(x, [&](auto zero) -> Status {
    const ReadElements<decltype(zero)> in(x);
    const WriteElements<decltype(zero)> out(c.results[0]);
    return c.for_ranges(c.results[0].size(), 1, [&](int64_t begin, int64_t end) -> Status {
      for (int64_t k = begin; k < end; ++k) {
        KILN_ASSIGN(const int64_t from, Result<int64_t>(place(k)));
        out.set(static_cast<size_t>(k), in[static_cast<size_t>(from)]);
      }
      return {};
    });
  });
}
// What was summed up elsewhere.
template <class Wide>
void give_all(RefTensor &y, const std::vector<Wide> &values) {
  const WriteAny out(y);
  for (size_t k = 0; k < values.size(); ++k) out.set(k, values[k]);
}

// The same of a result whose dim 0 is what a run found.
template <class Wide>
void give_found(RefTensor &y, int64_t found, const std::vector<Wide> &values) {
  y.shape[0] = found;
  y.native ? y.allocate_native() : y.allocate();
  give_all(y, values);
}

// Where a walk begins, in elements, and its strides.
struct Walk {
  int64_t begin = 0;
  std::vector<int64_t> strides;
};
// By ranges on several threads: as two walks over `shape` go, one through x, the other through y, elements of x are
// copied to y, which has its dtype.
Status copy_walked(const ReferenceContext &c, std::span<const int64_t> shape, const RefTensor &x, const Walk &from,
                   RefTensor &y, const Walk &to);
// Copies x at broadcast indices to result 0.
Status copy_broadcast(const ReferenceContext &c, const RefTensor &x);
// Of an operand of indices the first in order that is not 0 <= index < size is told.
Status require_in_range(const ReferenceContext &c, const RefTensor &index, int64_t size);

}  // namespace kiln::ops
