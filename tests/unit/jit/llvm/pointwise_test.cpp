// Map stages against plain loops: broadcasts, strides, predicates, tails, dtypes in memory.
#include <gmock/gmock.h>

#include <random>

#include "tests/guarded_bytes.h"
#include "tests/unit/jit/llvm/compiled_kernel.h"
#include "tests/unit/jit/llvm/vector_forms.h"

namespace kiln::codegen::testing {
namespace {

using kiln::testing::GuardedBytes;

std::vector<float> random_floats(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-4, 4);
  std::vector<float> values(count);
  for (float &value : values) value = uniform(random);
  return values;
}

// out[i, j] = x[i, j] * row[j] + column[i]
Kernel broadcast_kernel(Schedule::Vector vector) {
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1");
  Kernel kernel;
  kernel.symbols = {"s0", "s1"};
  kernel.buffers = {in(DType::f32), in(DType::f32), in(DType::f32), out(DType::f32)};
  kernel.buffers[3].size = m * n;
  const Expr i = axis(0, m), j = axis(1, n);
  Stage stage;
  if (vector == Schedule::Vector::parallel) {
    kernel.parallel = {parallel(m), parallel(n)};
    kernel.schedule.tiles = {2, 48};
  } else {
    kernel.parallel = {parallel(m)};
    stage.axes = {loop(n)};
    kernel.schedule.tiles = {3};
  }
  kernel.schedule.vector = vector;
  BodyBuilder b(stage.body);
  const int product = b.op(Core::mul, b.load(0, DType::f32, {i * n + j}), b.load(1, DType::f32, {j}));
  b.yield(b.op(Core::add, product, b.load(2, DType::f32, {i})));
  stage.stores = {store_at(3, i * n + j)};
  kernel.stages = {stage};
  return kernel;
}

TEST(Pointwise, BroadcastsRowsAndColumnsAtEverySize) {
  for (Schedule::Vector vector : {Schedule::Vector::parallel, Schedule::Vector::inner}) {
    at_every_level([&](const Target &target) {
      const LoadedKernel kernel(broadcast_kernel(vector), target);
      for (int64_t m : {0, 1, 5}) {
        for (int64_t n : {0, 1, 3, 16, 17, 47, 48, 49, 200}) {
          auto x = random_floats(static_cast<size_t>(m * n)), row = random_floats(static_cast<size_t>(n), 2),
               column = random_floats(static_cast<size_t>(m), 3);
          std::vector<float> y(static_cast<size_t>(m * n) + 16, -77.0f);
          EXPECT_EQ(kernel.run({data_of(x), data_of(row), data_of(column), data_of(y)}, {m, n}), 0u);
          for (size_t k = 0; k < x.size(); ++k) {
            const size_t i = k / static_cast<size_t>(n), j = k % static_cast<size_t>(n);
            ASSERT_EQ(y[k], x[k] * row[j] + column[i]) << m << "x" << n << " at " << i << ", " << j;
          }
          for (size_t k = x.size(); k < y.size(); ++k) ASSERT_EQ(y[k], -77.0f) << "a tail wrote beyond its end";
        }
      }
    });
  }
}

TEST(Pointwise, StreamingStoresWriteTheSameAtAnyAlignment) {
  at_every_level([](const Target &target) {
    Kernel source = broadcast_kernel(Schedule::Vector::parallel);
    source.schedule.stream_bytes = 1;
    const LoadedKernel kernel(source, target);
    const int64_t m = 3, n = 101;
    auto x = random_floats(303), row = random_floats(101, 2), column = random_floats(3, 3);
    for (size_t offset : {0, 1, 4, 5}) {
      std::vector<float> y(310, -1.0f);
      EXPECT_EQ(kernel.run({data_of(x), data_of(row), data_of(column), y.data() + offset}, {m, n}), 0u);
      for (size_t k = 0; k < x.size(); ++k) ASSERT_EQ(y[offset + k], x[k] * row[k % 101] + column[k / 101]);
      ASSERT_EQ(std::ranges::count(y, -1.0f), 7) << "elements beside the array";
    }
  });
}

std::string ir_of(Kernel kernel, const Target &target) {
  set_target(kernel, target);
  return compile(kernel, target, KILN_CODEGEN_IR).text;
}

TEST(Pointwise, OnlyWhatTheKernelDoesNotReadIsStreamed) {
  for (const Target &target : all_targets()) {
    Kernel kernel = broadcast_kernel(Schedule::Vector::parallel);
    EXPECT_EQ(ir_of(kernel, target).find("!nontemporal"), std::string::npos) << "no schedule asks for it";
    kernel.schedule.stream_bytes = 1;
    const std::string streamed = ir_of(kernel, target);
    EXPECT_NE(streamed.find("!nontemporal"), std::string::npos);
    EXPECT_NE(streamed.find("sfence"), std::string::npos) << "others read it when the task has ended";
    EXPECT_NE(streamed.find("llvm.prefetch"), std::string::npos) << "memory is what such a call waits for";

    Stage again;  // out[i, j] = -out[i, j]
    const Expr offset = axis(0, Expr::symbol("s0")) * Expr::symbol("s1") + axis(1, Expr::symbol("s1"));
    BodyBuilder b(again.body);
    b.yield(b.op(Core::neg, b.load(3, DType::f32, {offset})));
    again.stores = {store_at(3, offset)};
    kernel.stages.push_back(again);
    EXPECT_EQ(ir_of(kernel, target).find("!nontemporal"), std::string::npos);
  }
}

TEST(Pointwise, ABufferThatIsKnownToBeSmallIsNotStreamed) {
  Kernel kernel = broadcast_kernel(Schedule::Vector::parallel);
  kernel.schedule.stream_bytes = 4096;
  kernel.buffers[3].size = 1023;
  EXPECT_EQ(ir_of(kernel, all_targets().front()).find("!nontemporal"), std::string::npos);
  kernel.buffers[3].size = 1024;
  EXPECT_NE(ir_of(kernel, all_targets().front()).find("!nontemporal"), std::string::npos);
}

// One parallel axis of `extent`, out[store] = x[load].
Kernel copy_kernel(DType type, Expr extent, Expr load, Expr store, uint32_t tile = 64) {
  Kernel kernel;
  kernel.symbols = {"s0"};
  kernel.buffers = {in(type), out(type)};
  kernel.parallel = {parallel(std::move(extent))};
  kernel.schedule.tiles = {tile};
  Stage stage;
  BodyBuilder b(stage.body);
  b.yield(b.load(0, type, {std::move(load)}));
  stage.stores = {store_at(1, std::move(store))};
  kernel.stages = {stage};
  return kernel;
}

TEST(Pointwise, AnExtentOfWholeVectorsHasNoTail) {
  const Expr n = Expr::symbol("s0");
  for (const Target &target : all_targets()) {
    for (const auto &[extent, tails] : {std::pair(16 * n, false), {n, true}, {16 * n + 2, true}}) {
      const Expr i = axis(0, extent);
      const std::string ir = ir_of(copy_kernel(DType::f32, extent, i, i), target);
      const bool has_tail = ir.find("mask") != std::string::npos || ir.find("load float,") != std::string::npos;
      EXPECT_EQ(has_tail, tails) << target.name() << ": " << extent.text();
    }
  }
}

template <class T>
void expect_copies(DType type) {
  const Expr n = Expr::symbol("s0"), i = axis(0, n);
  at_every_level([&](const Target &target) {
    const LoadedKernel contiguous(copy_kernel(type, n, i, i), target), load3(copy_kernel(type, n, 3 * i, i), target),
        store3(copy_kernel(type, n, i, 3 * i), target), reverse(copy_kernel(type, n, n - 1 - i, i), target);
    for (int64_t size : {1, 7, 16, 33, 130}) {
      const auto count = static_cast<size_t>(size);
      std::vector<T> x(3 * count);
      for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<T>(type == DType::boolean ? k % 3 == 0 : k * 7 + 1);
      std::vector<T> y(count), z(count), w(3 * count), r(count);
      contiguous.run({data_of(x), data_of(y)}, {size});
      load3.run({data_of(x), data_of(z)}, {size});
      store3.run({data_of(x), data_of(w)}, {size});
      reverse.run({data_of(x), data_of(r)}, {size});
      for (size_t k = 0; k < count; ++k) {
        ASSERT_EQ(y[k], x[k]);
        ASSERT_EQ(z[k], x[3 * k]);
        ASSERT_EQ(w[3 * k], x[k]);
        ASSERT_EQ(r[k], x[count - 1 - k]);
        ASSERT_EQ(w[3 * k + 1], T{}) << "a strided store wrote between its elements";
      }
    }
  });
}

TEST(Pointwise, CopiesEveryDtypeContiguousStridedAndReversed) {
  expect_copies<float>(DType::f32);
  expect_copies<double>(DType::f64);
  expect_copies<int64_t>(DType::i64);
  expect_copies<int32_t>(DType::i32);
  expect_copies<int16_t>(DType::i16);
  expect_copies<int8_t>(DType::i8);
  expect_copies<uint8_t>(DType::u8);
  expect_copies<uint8_t>(DType::boolean);
  expect_copies<uint16_t>(DType::f16);
  expect_copies<uint16_t>(DType::bf16);
}

TEST(Pointwise, DividesIndicesThatCrossRows) {
  // A transposition of 10 x 7 and of 32 x 64 through a flattened axis; the latter's rows fit whole vectors.
  for (auto [rows, columns] : {std::pair{10, 7}, std::pair{32, 64}}) {
    at_every_level([&, rows = rows, columns = columns](const Target &target) {
      const int64_t count = rows * columns;
      const Expr i = axis(0, count);
      const Expr transposed = mod(i, Expr(columns)) * rows + floor_div(i, Expr(columns));
      const LoadedKernel scatter(copy_kernel(DType::f32, count, i, transposed), target);
      const LoadedKernel gather(copy_kernel(DType::f32, count, transposed, i), target);
      auto x = random_floats(static_cast<size_t>(count));
      std::vector<float> y(x.size()), back(x.size());
      scatter.run({data_of(x), data_of(y)}, {0});
      gather.run({data_of(y), data_of(back)}, {0});
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          ASSERT_EQ(y[static_cast<size_t>(c * rows + r)], x[static_cast<size_t>(r * columns + c)]);
      EXPECT_EQ(back, x);
    });
  }
}

TEST(Pointwise, DividesIndicesBySymbolsAndNegativeOnes) {
  // out[i] = x[(i - 20) // n mod 4]
  const Expr n = Expr::symbol("s0"), i = axis(0, 64);
  at_every_level([&](const Target &target) {
    const LoadedKernel kernel(copy_kernel(DType::i32, 64, mod(floor_div(i - 20, n), Expr(4)), i), target);
    std::vector<int32_t> x{10, 20, 30, 40}, y(64);
    for (int64_t size : {1, 3, 5, 64}) {
      kernel.run({data_of(x), data_of(y)}, {size});
      for (int64_t k = 0; k < 64; ++k) {
        const auto quotient = static_cast<int64_t>(std::floor(static_cast<double>(k - 20) / static_cast<double>(size)));
        ASSERT_EQ(y[static_cast<size_t>(k)], x[static_cast<size_t>(((quotient % 4) + 4) % 4)]) << k << " // " << size;
      }
    }
  });
}

// out[i] = 0 <= i - 3 < n ? x[stride * (i - 3)] : 9, over n + 6 points: a padded copy.
Kernel pad_kernel(DType type, int stride) {
  const Expr n = Expr::symbol("s0"), i = axis(0, n + 6);
  Kernel kernel = copy_kernel(type, n + 6, 0, i);
  Stage &stage = kernel.stages[0];
  stage.body = {};
  BodyBuilder b(stage.body);
  const int from = b.index(i - 3);
  const int valid =
      b.op(Core::logical_and, b.op(Core::ge, from, b.constant(DType::i64, 0)), b.op(Core::lt, from, b.index(n)));
  b.yield(b.load(0, type, {stride * (i - 3)}, valid, immediate_of(type, 9)));
  return kernel;
}

template <class T>
void expect_padding(DType type) {
  for (int stride : {1, 2}) {
    at_every_level([&](const Target &target) {
      const LoadedKernel kernel(pad_kernel(type, stride), target);
      for (int64_t n : {0, 1, 13, 100}) {
        for (const auto place : {GuardedBytes::Place::begin, GuardedBytes::Place::end}) {
          const GuardedBytes memory(static_cast<size_t>(n * stride) * sizeof(T), place);
          T *x = reinterpret_cast<T *>(memory.begin());
          for (int64_t k = 0; k < n * stride; ++k) x[k] = static_cast<T>(k + 20);
          std::vector<T> y(static_cast<size_t>(n) + 6);
          EXPECT_EQ(kernel.run({x, data_of(y)}, {n}), 0u);
          for (int64_t k = 0; k < n + 6; ++k)
            ASSERT_EQ(y[static_cast<size_t>(k)], k >= 3 && k < n + 3 ? x[(k - 3) * stride] : T(9)) << n << " at " << k;
        }
      }
    });
  }
}

TEST(Pointwise, PredicatedLoadsReadTheFillAndTouchNoMemory) {
  expect_padding<float>(DType::f32);
  expect_padding<double>(DType::f64);
  expect_padding<int64_t>(DType::i64);
  expect_padding<int16_t>(DType::i16);
  expect_padding<uint8_t>(DType::u8);
}

constexpr DType every_dtype[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                                 DType::i32, DType::i16, DType::i8,  DType::u8,   DType::boolean};

TEST(Pointwise, AccessesMemoryInTheFormsOfEachLevelAlone) {
  const Expr n = Expr::symbol("s0"), i = axis(0, n);
  for (const Target &target : all_targets()) {
    for (DType type : every_dtype) {
      SCOPED_TRACE(str_cat(target.name(), ", ", name_of(type)));
      std::vector<Kernel> kernels = {copy_kernel(type, n, i, i), copy_kernel(type, n, 3 * i, i),
                                     copy_kernel(type, n, i, 3 * i), copy_kernel(type, n, n - 1 - i, i)};
      if (dtype_info(type).is_float || type == DType::i64) {
        kernels.push_back(pad_kernel(type, 1));
        kernels.push_back(pad_kernel(type, 2));
      }
      for (const Kernel &kernel : kernels)
        EXPECT_THAT(kiln::testing::forbidden_forms(ir_of(kernel, target), target), ::testing::IsEmpty());
    }
  }
}

// out[i, j] = i == 1 && 2 <= j < 3 ? x[0] : -7, over 3 x 6 points.
Kernel pad_one_kernel(DType type) {
  Kernel kernel;
  kernel.buffers = {in(type), out(type)};
  kernel.parallel = {parallel(3), parallel(6)};
  kernel.schedule.tiles = {3, 64};
  const Expr i = axis(0, 3), j = axis(1, 6);
  Stage stage;
  BodyBuilder b(stage.body);
  const auto inside = [&](const Expr &at) {
    const int from = b.index(at);
    return b.op(Core::logical_and, b.op(Core::ge, from, b.constant(DType::i64, 0)),
                b.op(Core::lt, from, b.constant(DType::i64, 1)));
  };
  const int valid = b.op(Core::logical_and, inside(i - 1), inside(j - 2));
  b.yield(b.load(0, type, {i - 1 + j - 2}, valid, immediate_of(type, -7)));
  stage.stores = {store_at(1, i * 6 + j)};
  kernel.stages = {stage};
  return kernel;
}

template <class T>
void expect_one_in_padding(DType type) {
  at_every_level([&](const Target &target) {
    SCOPED_TRACE(name_of(type));
    const LoadedKernel kernel(pad_one_kernel(type), target);
    std::vector<T> y(18);
    const GuardedBytes at_end(sizeof(T), GuardedBytes::Place::end), at_begin(sizeof(T), GuardedBytes::Place::begin);
    for (const GuardedBytes *memory : {&at_end, &at_begin}) {
      T &x = *reinterpret_cast<T *>(memory->begin());
      x = T(5);
      EXPECT_EQ(kernel.run({&x, data_of(y)}), 0u);
      for (size_t k = 0; k < y.size(); ++k) ASSERT_EQ(y[k], k == 8 ? T(5) : T(-7)) << k;
    }
  });
}

// All lanes of a register may be known to be padding.
TEST(Pointwise, APredicateThatIsKnownInPartReadsTheFillAndTouchesNoMemory) {
  expect_one_in_padding<double>(DType::f64);
  expect_one_in_padding<float>(DType::f32);
  expect_one_in_padding<int64_t>(DType::i64);
  expect_one_in_padding<int32_t>(DType::i32);
  expect_one_in_padding<int16_t>(DType::i16);
  expect_one_in_padding<int8_t>(DType::i8);
}

TEST(Pointwise, UniformPredicatesGuardWholeRows) {
  // out[i, j] = i < 2 ? x[i, j] : -1, where x has two rows; a broadcast with a varying predicate beside it.
  at_every_level([](const Target &target) {
    Kernel source;
    source.buffers = {in(DType::f32), out(DType::f32), in(DType::f32)};
    source.parallel = {parallel(4), parallel(21)};
    source.schedule.tiles = {1, 64};
    const Expr i = axis(0, 4), j = axis(1, 21);
    Stage stage;
    BodyBuilder b(stage.body);
    const int first_rows = b.op(Core::lt, b.index(i), b.constant(DType::i64, 2));
    const int first_columns = b.op(Core::lt, b.index(j), b.constant(DType::i64, 5));
    const int x = b.load(0, DType::f32, {i * 21 + j}, first_rows, immediate_of(DType::f32, -1));
    b.yield(b.op(Core::add, x, b.load(2, DType::f32, {i}, first_columns, immediate_of(DType::f32, 100))));
    stage.stores = {store_at(1, i * 21 + j)};
    source.stages = {stage};
    const LoadedKernel kernel(source, target);
    auto x_values = random_floats(42), column = random_floats(4, 2);
    std::vector<float> y(84);
    EXPECT_EQ(kernel.run({data_of(x_values), data_of(y), data_of(column)}), 0u);
    for (size_t k = 0; k < 84; ++k)
      ASSERT_EQ(y[k], (k < 42 ? x_values[k] : -1.0f) + (k % 21 < 5 ? column[k / 21] : 100.0f)) << k;
  });
}

// y[i] = x[2 * i - before], and -1 where there is none.
Kernel every_other(int64_t count, int64_t before) {
  Kernel kernel;
  kernel.buffers = {in(DType::f32), out(DType::f32)};
  kernel.parallel = {parallel(count)};
  kernel.schedule.tiles = {static_cast<uint32_t>(std::min<int64_t>(count, 64))};
  const Expr i = axis(0, count);
  Stage stage;
  BodyBuilder b(stage.body);
  const int exists = before ? b.op(Core::ge, b.index(2 * i - before), b.index(0)) : -1;
  b.yield(b.load(0, DType::f32, {2 * i - before}, exists, immediate_of(DType::f32, -1)));
  stage.stores = {store_at(1, i)};
  kernel.stages = {stage};
  return kernel;
}

TEST(Pointwise, EveryOtherElementIsReadToTheLastOne) {
  at_every_level([](const Target &target) {
    for (const int64_t before : {0, 1, 5}) {
      for (const int64_t count : {1, 3, 8, 13, 16, 64}) {
        const LoadedKernel kernel(every_other(count, before), target);
        auto x = random_floats(static_cast<size_t>(std::max<int64_t>(2 * count - 1 - before, 1)));
        std::vector<float> y(static_cast<size_t>(count));
        EXPECT_EQ(kernel.run({data_of(x), data_of(y)}), 0u);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t from = 2 * i - before;
          ASSERT_EQ(y[static_cast<size_t>(i)], from < 0 ? -1.0f : x[static_cast<size_t>(from)]) << i << " of " << count;
        }
      }
    }
  });
}

TEST(Pointwise, EveryOtherElementIsReadInVectorsWhereNoneAreGathered) {
  const Target v3 = *Target::by_name("v3");
  EXPECT_THAT(ir_of(every_other(64, 0), v3), ::testing::Not(::testing::HasSubstr("load float,")));
  EXPECT_THAT(ir_of(every_other(64, 5), v3), ::testing::HasSubstr("x86.avx.maskload.ps.256"));
}

TEST(Pointwise, IndicesThatAreKnownToBeSmallAreComparedIn32Bits) {
  const Target v3 = *Target::by_name("v3");
  const std::string small = ir_of(every_other(64, 5), v3);
  EXPECT_THAT(small, ::testing::HasSubstr("icmp sge <8 x i32>"));
  EXPECT_THAT(small, ::testing::Not(::testing::HasSubstr("<8 x i64>")));
  EXPECT_THAT(ir_of(every_other(int64_t{1} << 40, 5), v3), ::testing::HasSubstr("icmp sge <8 x i64>"));
}

}  // namespace
}  // namespace kiln::codegen::testing
