// What code must not do: trap, or touch memory outside a buffer. It sets the call's error word instead.
#include <cstdint>
#include <limits>

#include "tests/unit/jit/llvm/compiled_kernel.h"

namespace kiln::codegen::testing {
namespace {

// out[i] = a[i] op b[i] over n points.
Kernel binary_kernel(Core op, DType type) {
  const Expr n = Expr::symbol("s0"), i = axis(0, n);
  Kernel kernel;
  kernel.symbols = {"s0"};
  kernel.buffers = {in(type), in(type), out(type)};
  kernel.parallel = {parallel(n)};
  kernel.schedule.tiles = {64};
  Stage stage;
  BodyBuilder b(stage.body);
  b.yield(b.op(op, b.load(0, type, {i}), b.load(1, type, {i})));
  stage.stores = {store_at(2, i)};
  kernel.stages = {stage};
  return kernel;
}

template <class T>
void expect_division(DType type) {
  at_every_level([&](const Target &target) {
    const LoadedKernel quotient(binary_kernel(Core::div, type), target), rest(binary_kernel(Core::rem, type), target);
    const T least = std::numeric_limits<T>::min(), minus_one = static_cast<T>(-1);
    std::vector<T> a, b;
    for (int x = -20; x < 20; ++x) {
      for (int y : {-7, -3, -1, 1, 2, 5}) {
        a.push_back(static_cast<T>(x));
        b.push_back(static_cast<T>(y));
      }
    }
    a.push_back(least);
    b.push_back(minus_one);
    std::vector<T> q(a.size()), r(a.size());
    const auto count = static_cast<int64_t>(a.size());
    EXPECT_EQ(quotient.run({data_of(a), data_of(b), data_of(q)}, {count}), 0u);
    EXPECT_EQ(rest.run({data_of(a), data_of(b), data_of(r)}, {count}), 0u);
    for (size_t k = 0; k + 1 < a.size(); ++k) {
      ASSERT_EQ(q[k], static_cast<T>(a[k] / b[k]));
      T expected = static_cast<T>(a[k] % b[k]);
      if (expected != 0 && (expected < 0) != (b[k] < 0)) expected = static_cast<T>(expected + b[k]);
      ASSERT_EQ(r[k], expected) << int64_t{a[k]} << " rem " << int64_t{b[k]};
    }
    if (std::numeric_limits<T>::is_signed) {
      EXPECT_EQ(q.back(), least) << "the least number over -1 wraps";
      EXPECT_EQ(r.back(), 0);
    }
    b[7] = 0;
    b.back() = 0;
    EXPECT_EQ(quotient.run({data_of(a), data_of(b), data_of(q)}, {count}), KILN_ERROR_DIVISION_BY_ZERO);
    EXPECT_EQ(rest.run({data_of(a), data_of(b), data_of(r)}, {count}), KILN_ERROR_DIVISION_BY_ZERO);
    EXPECT_EQ(q[7], 0);
    EXPECT_EQ(r[7], 0);
    EXPECT_EQ(q.back(), 0);
    EXPECT_EQ(q[8], static_cast<T>(a[8] / b[8])) << "the other lanes are not disturbed";
  });
}

TEST(Errors, IntegerDivisionByZeroIsZeroAndSetsTheErrorWord) {
  expect_division<int64_t>(DType::i64);
  expect_division<int32_t>(DType::i32);
  expect_division<int16_t>(DType::i16);
  expect_division<int8_t>(DType::i8);
  expect_division<uint8_t>(DType::u8);
}

TEST(Errors, LanesBeyondTheEndRaiseNothing) {
  at_every_level([](const Target &target) {
    const LoadedKernel kernel(binary_kernel(Core::div, DType::i32), target);
    for (int64_t n : {1, 3, 15, 17, 30}) {
      std::vector<int32_t> a(64, 6), b(64, 0), q(64, 5);  // zeros follow the end
      for (int64_t k = 0; k < n; ++k) b[static_cast<size_t>(k)] = 2;
      EXPECT_EQ(kernel.run({data_of(a), data_of(b), data_of(q)}, {n}), 0u) << n;
      EXPECT_EQ(q[static_cast<size_t>(n)], 5);
    }
  });
}

// An embedding: out[i, j] = table[index[i], j] where index is in range, else 0. `columns`: 1 puts lanes along i.
Kernel embedding_kernel(DType type, int64_t rows, int64_t columns) {
  const Expr n = Expr::symbol("s0"), i = axis(0, n), j = axis(1, columns);
  Kernel kernel;
  kernel.symbols = {"s0"};
  kernel.buffers = {in(type), in(DType::i64), out(type)};
  kernel.parallel = {parallel(n)};
  kernel.schedule.tiles = {16};
  kernel.schedule.vector = columns > 1 ? Schedule::Vector::inner : Schedule::Vector::parallel;
  Stage stage;
  if (columns > 1) stage.axes = {loop(columns)};
  const Expr column = columns > 1 ? j : Expr(0);
  BodyBuilder b(stage.body);
  const int row = b.load(1, DType::i64, {i});
  const int valid = b.op(Core::in_range, row, b.constant(DType::i64, static_cast<double>(rows)));
  b.yield(b.load(0, type, {Expr::value(static_cast<uint32_t>(row)) * columns + column}, valid, 0));
  stage.stores = {store_at(2, i * columns + column)};
  kernel.stages = {stage};
  return kernel;
}

template <class T>
void expect_guarded(DType type) {
  for (int64_t columns : {1, 37}) {
    at_every_level([&](const Target &target) {
      const int64_t rows = 11;
      const LoadedKernel kernel(embedding_kernel(type, rows, columns), target);
      // The table lies between two pages that cannot be read.
      const size_t page = 4096, bytes = static_cast<size_t>(rows * columns) * sizeof(T);
      ASSERT_LE(bytes, page);
      auto *base = static_cast<uint8_t *>(mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      mprotect(base + page, page, PROT_READ | PROT_WRITE);
      for (uint8_t *start : {base + page, base + 2 * page - bytes}) {
        T *table = reinterpret_cast<T *>(start);
        for (int64_t k = 0; k < rows * columns; ++k) table[k] = static_cast<T>(k % 100 + 1);
        std::vector<int64_t> index;
        for (int64_t k = 0; k < 45; ++k) index.push_back(k * 5 % rows);
        std::vector<T> y(index.size() * static_cast<size_t>(columns));
        const auto count = static_cast<int64_t>(index.size());
        EXPECT_EQ(kernel.run({table, data_of(index), data_of(y)}, {count}), 0u);
        for (int64_t bad : {int64_t{-1}, rows, int64_t{1} << 20, int64_t{-4000000000}}) {
          index[20] = bad;
          EXPECT_EQ(kernel.run({table, data_of(index), data_of(y)}, {count}), KILN_ERROR_INDEX_OUT_OF_RANGE) << bad;
          for (int64_t k = 0; k < count * columns; ++k) {
            const int64_t row = index[static_cast<size_t>(k / columns)];
            ASSERT_EQ(y[static_cast<size_t>(k)], row == bad ? T{} : table[row * columns + k % columns]);
          }
        }
      }
      munmap(base, 3 * page);
    });
  }
}

TEST(Errors, AnIndexOutOfRangeReadsTheFillAndTouchesNoMemory) {
  expect_guarded<float>(DType::f32);
  expect_guarded<double>(DType::f64);
  expect_guarded<int16_t>(DType::i16);
  expect_guarded<uint8_t>(DType::u8);
}

TEST(Errors, AKernelThatCannotBeEmittedIsAnErrorThatNamesTheOperation) {
  Kernel kernel = binary_kernel(Core::add, DType::f16);
  set_target(kernel, Target::host());
  EXPECT_EQ(compile(kernel, Target::host()).error, "core op add of f16");
  kernel = binary_kernel(Core::add, DType::f32);
  kernel.schedule.vector_bytes = 48;
  EXPECT_NE(compile(kernel, Target::host()).error.find("power of two"), std::string::npos);
}

}  // namespace
}  // namespace kiln::codegen::testing
