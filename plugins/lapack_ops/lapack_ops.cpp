// Ops that LAPACK runs, by LAPACKE:
//
//   lapack.solve     x with a x = b, by LU factors of a
//   lapack.cholesky  the lower triangle l with l l' = a
//
// Kiln's matrices are row-major and LAPACK's column-major, so what LAPACK is given is the transpose. LU factors of a'
// serve as well (getrs solves with what it has factored or with its transpose), and the upper factor of a', in place,
// is the lower one of a. So no matrix is ever transposed, but for b and x, where they have several columns.
#include <lapacke.h>

#include <algorithm>
#include <cstdint>
#include <kiln/op.hpp>
#include <limits>

KILN_PLUGIN_NOTE(0, KILN_FEATURE_OPS, "lapack_ops");

namespace {

using kiln::op::Arrays;
using kiln::op::Call;
using kiln::op::Error;

// ---- LAPACK, in both types

constexpr int columns_first = LAPACK_COL_MAJOR;

lapack_int factor_lu(lapack_int n, float *a, lapack_int *pivots) {
  return LAPACKE_sgetrf_work(columns_first, n, n, a, n, pivots);
}
lapack_int factor_lu(lapack_int n, double *a, lapack_int *pivots) {
  return LAPACKE_dgetrf_work(columns_first, n, n, a, n, pivots);
}
void solve_transposed(lapack_int n, lapack_int k, const float *lu, const lapack_int *pivots, float *x) {
  LAPACKE_sgetrs_work(columns_first, 'T', n, k, lu, n, pivots, x, n);
}
void solve_transposed(lapack_int n, lapack_int k, const double *lu, const lapack_int *pivots, double *x) {
  LAPACKE_dgetrs_work(columns_first, 'T', n, k, lu, n, pivots, x, n);
}
lapack_int factor_upper(lapack_int n, float *a) { return LAPACKE_spotrf_work(columns_first, 'U', n, a, n); }
lapack_int factor_upper(lapack_int n, double *a) { return LAPACKE_dpotrf_work(columns_first, 'U', n, a, n); }

lapack_int lapack_size(int64_t size, const char *what) {
  if (size <= std::numeric_limits<lapack_int>::max()) return static_cast<lapack_int>(size);
  throw Error(KILN_OUT_OF_RANGE,
              std::string(what) + " is " + std::to_string(size) + ", more than LAPACK's integers hold");
}

// ---- stacks of matrices

// The product of the first sizes.
size_t count_of(const std::vector<int64_t> &shape, size_t rank) {
  size_t count = 1;
  for (size_t d = 0; d < rank; d++) count *= static_cast<size_t>(shape[d]);
  return count;
}

// "a[1, 0]": matrix number `index` of those that stand in the leading dims; "a" where there is but one.
std::string matrix_name(const std::vector<int64_t> &shape, size_t index) {
  std::string place;
  for (size_t d = shape.size() - 2; d-- > 0;) {
    const auto size = static_cast<size_t>(shape[d]);
    place = std::to_string(index % size) + (place.empty() ? "" : ", ") + place;
    index /= size;
  }
  return place.empty() ? "a" : "a[" + place + "]";
}

// The dims of a, which are [..., n, n].
std::vector<kiln_dim> square_dims(Call &call) {
  std::vector<kiln_dim> a = call.dims(0);
  if (a.size() < 2) call.fail("a is " + call.text(a) + ", expected [..., n, n]");
  const size_t row = a.size() - 2;
  call.require_equal(a[row], a[row + 1], "a dim " + std::to_string(row) + " and a dim " + std::to_string(row + 1));
  return a;
}

// Memory of both types, of which a node uses one.
template <template <class> class Work>
struct OfBoth {
  Work<float> floats;
  Work<double> doubles;
};

// ---- lapack.solve

class Solve {
 public:
  static constexpr std::string_view schema = R"({
      "name": "lapack.solve",
      "doc": "x with a x = b, by LU factors with partial pivoting (LAPACK's getrf, getrs). A matrix that is singular ends the run; a NaN in one makes NaNs of its x.",
      "args": [{"name": "a", "doc": "[..., n, n]", "dtypes": ["f32", "f64"]},
               {"name": "b", "doc": "[..., n, k], or [..., n]: vectors", "dtypes": ["f32", "f64"]}],
      "results": ["x"],
      "samples": [
        {"name": "matrix", "inputs": [{"dtype": "f32", "shape": [3, 3]}, {"dtype": "f32", "shape": [3, 2]}]},
        {"name": "vector", "inputs": [{"dtype": "f64", "shape": [5, 5]}, {"dtype": "f64", "shape": [5]}]},
        {"name": "one", "inputs": [{"dtype": "f32", "shape": [1, 1]}, {"dtype": "f32", "shape": [1, 1]}], "range": [1, 2]},
        {"name": "batches", "inputs": [{"dtype": "f64", "shape": [2, 3, 4, 4]}, {"dtype": "f64", "shape": [2, 3, 4, 3]}]},
        {"name": "vectors", "inputs": [{"dtype": "f32", "shape": [6, 4, 4]}, {"dtype": "f32", "shape": [6, 4]}]},
        {"name": "no_matrices", "inputs": [{"dtype": "f32", "shape": [0, 4, 4]}, {"dtype": "f32", "shape": [0, 4, 2]}]},
        {"name": "no_rows", "inputs": [{"dtype": "f64", "shape": [2, 0, 0]}, {"dtype": "f64", "shape": [2, 0, 3]}]},
        {"name": "no_columns", "inputs": [{"dtype": "f64", "shape": [4, 4]}, {"dtype": "f64", "shape": [4, 0]}]},
        {"name": "symbolic", "inputs": [{"dtype": "f64", "shape": ["m", "n", "n"]}, {"dtype": "f64", "shape": ["m", "n", "k"]}],
         "sizes": {"m": 3, "n": 4, "k": 2}}]})";
  static constexpr std::array<uint8_t, 16> uuid = {0xf3, 0xd3, 0xef, 0xd0, 0xc4, 0x24, 0x4d, 0xd5,
                                                   0xac, 0x65, 0x1e, 0xd3, 0x16, 0x1d, 0x5c, 0x20};
  static constexpr uint32_t flags = KILN_OP_ANY_THREAD;

  static void infer(Call &call) {
    const std::vector<kiln_dim> a = square_dims(call), b = call.dims(1);
    if (b.size() != a.size() && b.size() + 1 != a.size())
      call.fail("a is " + call.text(a) + " and b " + call.text(b) +
                ", expected [..., n, n] and [..., n, k] or [..., n]");
    for (size_t d = 0; d + 1 < a.size(); d++) {  // the leading ones, then rows
      const std::string number = std::to_string(d);
      call.require_equal(a[d], b[d], "a dim " + number + " and b dim " + number);
    }
    call.result(0, call.dtype(0), b);
  }

  explicit Solve(Call &) {}

  void run(const Arrays &arrays) {
    if (arrays.is_f64(0))
      solve(arrays, work_.doubles);
    else
      solve(arrays, work_.floats);
  }

 private:
  template <class T>
  struct Work {
    std::vector<T> lu, columns;
  };

  template <class T>
  void solve(const Arrays &arrays, Work<T> &work) {
    const std::vector<int64_t> shape = arrays.shape(0), of_b = arrays.shape(1);
    const bool is_vector = of_b.size() < shape.size();
    const lapack_int n = lapack_size(shape.back(), "n"), k = is_vector ? 1 : lapack_size(of_b.back(), "k");
    const auto rows = static_cast<size_t>(n), columns = static_cast<size_t>(k);
    if (rows == 0 || columns == 0) return;
    const size_t count = count_of(shape, shape.size() - 2);
    pivots_.resize(rows);
    work.lu.resize(rows * rows);
    if (k > 1) work.columns.resize(rows * columns);
    for (size_t i = 0; i < count; i++) {
      std::copy_n(arrays.data<T>(0) + i * rows * rows, rows * rows, work.lu.data());
      if (const lapack_int pivot = factor_lu(n, work.lu.data(), pivots_.data()))
        throw Error(KILN_OUT_OF_RANGE, matrix_name(shape, i) + " is singular: pivot " + std::to_string(pivot) + " of " +
                                           std::to_string(n) + " is 0");
      const T *const b = arrays.data<T>(1) + i * rows * columns;
      T *const x = arrays.data<T>(2) + i * rows * columns;
      if (k == 1) {
        std::copy_n(b, rows, x);
        solve_transposed(n, k, work.lu.data(), pivots_.data(), x);
        continue;
      }
      transpose(b, rows, columns, work.columns.data());
      solve_transposed(n, k, work.lu.data(), pivots_.data(), work.columns.data());
      transpose(work.columns.data(), columns, rows, x);
    }
  }

  template <class T>
  static void transpose(const T *from, size_t rows, size_t columns, T *to) {
    for (size_t i = 0; i < rows; i++)
      for (size_t j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j];
  }

  std::vector<lapack_int> pivots_;
  OfBoth<Work> work_;
};

// ---- lapack.cholesky

class Cholesky {
 public:
  static constexpr std::string_view schema = R"({
      "name": "lapack.cholesky",
      "doc": "The lower triangle l with l l' = a + jitter I (LAPACK's potrf). The lower triangle of a alone is read. A matrix that is not positive definite, or has a NaN there, ends the run.",
      "args": [{"name": "a", "doc": "[..., n, n]", "dtypes": ["f32", "f64"]}],
      "results": ["l"],
      "attrs": [{"name": "jitter", "doc": "added to the diagonal, for matrices that are so but for rounding", "kind": "f64", "default": 0}],
      "samples": [
        {"name": "matrix", "inputs": [{"dtype": "f32", "shape": [4, 4]}], "attrs": {"jitter": 8}},
        {"name": "one", "inputs": [{"dtype": "f64", "shape": [1, 1]}], "range": [1, 2]},
        {"name": "batches", "inputs": [{"dtype": "f64", "shape": [2, 3, 5, 5]}], "attrs": {"jitter": 10}},
        {"name": "no_matrices", "inputs": [{"dtype": "f64", "shape": [0, 3, 3]}]},
        {"name": "no_rows", "inputs": [{"dtype": "f32", "shape": [2, 0, 0]}]},
        {"name": "symbolic", "inputs": [{"dtype": "f32", "shape": ["m", "n", "n"]}], "attrs": {"jitter": 6},
         "sizes": {"m": 2, "n": 3}}]})";
  static constexpr std::array<uint8_t, 16> uuid = {0x00, 0x23, 0x37, 0xb4, 0x0c, 0xa5, 0x4e, 0x13,
                                                   0xbb, 0x26, 0xd4, 0x02, 0xf3, 0xed, 0x4f, 0x5e};
  static constexpr uint32_t flags = KILN_OP_ANY_THREAD;

  static void infer(Call &call) { call.result(0, call.dtype(0), square_dims(call)); }

  explicit Cholesky(Call &call) : jitter_(call.number("jitter")) {}

  void run(const Arrays &arrays) const {
    if (arrays.is_f64(0))
      factor<double>(arrays);
    else
      factor<float>(arrays);
  }

 private:
  template <class T>
  void factor(const Arrays &arrays) const {
    const std::vector<int64_t> shape = arrays.shape(0);
    const lapack_int n = lapack_size(shape.back(), "n");
    const auto rows = static_cast<size_t>(n);
    if (rows == 0) return;
    const size_t count = count_of(shape, shape.size() - 2);
    for (size_t i = 0; i < count; i++) {
      const T *const a = arrays.data<T>(0) + i * rows * rows;
      T *const l = arrays.data<T>(1) + i * rows * rows;
      for (size_t r = 0; r < rows; r++) {
        std::copy_n(a + r * rows, r + 1, l + r * rows);
        std::fill_n(l + r * rows + r + 1, rows - r - 1, T(0));
        l[r * rows + r] += static_cast<T>(jitter_);
      }
      if (const lapack_int order = factor_upper(n, l))
        throw Error(KILN_OUT_OF_RANGE, matrix_name(shape, i) +
                                           " is not positive definite: its leading minor of order " +
                                           std::to_string(order) + " is not positive");
    }
  }

  const double jitter_;
};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::op::plugin<Solve, Cholesky>("lapack_ops"); }
