// Reductions and kernels of several stages against plain loops, at odd sizes.
#include <cmath>
#include <limits>
#include <random>

#include "tests/unit/jit/llvm/compiled_kernel.h"

namespace kiln::codegen::testing {
namespace {

constexpr int64_t odd_sizes[] = {0, 1, 7, 15, 16, 17, 1000};

template <class T>
std::vector<T> random_numbers(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-30, 30);
  std::vector<T> values(count);
  for (T &value : values) value = static_cast<T>(uniform(random));
  return values;
}

// out[i] = reduction over j of x[i, j] (rows), or of x[j, i] (columns).
Kernel reduction_kernel(DType type, Carriers carriers, bool rows, Expr length) {
  const Expr m = Expr::symbol("s0"), n = std::move(length);
  Kernel kernel;
  kernel.symbols = {"s0", "s1"};
  kernel.buffers = {in(type), out(type)};
  kernel.parallel = {parallel(m)};
  kernel.schedule.tiles = {rows ? 2u : 40u};
  kernel.schedule.vector = rows ? Schedule::Vector::inner : Schedule::Vector::parallel;
  Stage stage;
  stage.axes = {reduce(n)};
  BodyBuilder b(stage.body);
  const Expr i = axis(0, m), j = axis(1, n);
  b.yield(b.load(0, type, {rows ? i * n + j : j * m + i}));
  stage.carriers = std::move(carriers);
  stage.stores = {store_at(1, i)};
  kernel.stages = {stage};
  return kernel;
}

TEST(Reduce, LinesAreAskedForAheadWhereMemoryIsLargeAndTheSumsAreTheSame) {
  const auto asks = [](const Kernel &source, const Target &target) {
    Kernel kernel = source;
    set_target(kernel, target);
    const std::string text = compile(kernel, target, KILN_CODEGEN_IR).text;
    return text.find("llvm.prefetch") != std::string::npos;
  };
  for (bool rows : {true, false}) {
    at_every_level([&](const Target &target) {
      Kernel source = reduction_kernel(DType::f32, carriers_of(Core::add, DType::f32), rows, Expr::symbol("s1"));
      source.buffers[0].size = Expr::symbol("s0") * Expr::symbol("s1");
      EXPECT_FALSE(asks(source, target)) << "no schedule asks for it";
      const LoadedKernel plain(source, target);
      source.schedule.stream_bytes = 4 * 53 * 100;
      EXPECT_TRUE(asks(source, target));
      const LoadedKernel ahead(source, target);
      for (int64_t n : {99, 100, 101, 1000}) {  // below the limit, and above
        auto x = random_numbers<float>(static_cast<size_t>(53 * n));
        std::vector<float> expected(53), got(53);
        EXPECT_EQ(plain.run({data_of(x), data_of(expected)}, {53, n}), 0u);
        EXPECT_EQ(ahead.run({data_of(x), data_of(got)}, {53, n}), 0u);
        EXPECT_EQ(got, expected);
      }
    });
  }
}

// `step(accumulator, x)`; the tolerance is relative to the sum of magnitudes.
template <class T, class Step>
void expect_reduction(DType type, Core combine, double identity, double tolerance, Step step) {
  for (bool rows : {true, false}) {
    at_every_level([&](const Target &target) {
      const LoadedKernel any(reduction_kernel(type, carriers_of(combine, type), rows, Expr::symbol("s1")), target);
      for (int64_t n : odd_sizes) {
        const LoadedKernel fixed(reduction_kernel(type, carriers_of(combine, type), rows, Expr(n)), target);
        const int64_t m = 53;
        auto x = random_numbers<T>(static_cast<size_t>(m * n));
        if (combine == Core::mul)
          for (T &value : x) value = static_cast<T>(std::abs(static_cast<double>(value)) / 60 + 0.75);
        for (const LoadedKernel *kernel : {&any, &fixed}) {
          std::vector<T> y(static_cast<size_t>(m));
          EXPECT_EQ(kernel->run({data_of(x), data_of(y)}, {m, n}), 0u);
          for (int64_t i = 0; i < m; ++i) {
            double expected = identity, size = 1;
            for (int64_t j = 0; j < n; ++j) {
              const auto value = static_cast<double>(x[static_cast<size_t>(rows ? i * n + j : j * m + i)]);
              expected = step(expected, value);
              size += combine == Core::add ? std::abs(value) : 0;
            }
            const auto got = static_cast<double>(y[static_cast<size_t>(i)]);
            if (std::isinf(expected)) {
              ASSERT_EQ(got, expected);
            } else {
              ASSERT_NEAR(got, expected, tolerance * std::max(size, std::abs(expected))) << "row " << i << " of " << n;
            }
          }
        }
      }
    });
  }
}

TEST(Reduce, SumsRowsAndColumnsOfOddSizes) {
  const auto sum = [](double a, double b) { return a + b; };
  expect_reduction<float>(DType::f32, Core::add, 0, 1e-6, sum);
  expect_reduction<double>(DType::f64, Core::add, 0, 1e-15, sum);
  expect_reduction<int64_t>(DType::i64, Core::add, 0, 0, sum);
  expect_reduction<int32_t>(DType::i32, Core::add, 0, 0, sum);
}

TEST(Reduce, MultipliesAndFindsExtremes) {
  const double infinity = std::numeric_limits<double>::infinity();
  expect_reduction<double>(DType::f64, Core::mul, 1, 1e-12, [](double a, double b) { return a * b; });
  expect_reduction<float>(DType::f32, Core::max, -infinity, 0, [](double a, double b) { return std::max(a, b); });
  expect_reduction<float>(DType::f32, Core::min, infinity, 0, [](double a, double b) { return std::min(a, b); });
}

TEST(Reduce, AnExtremeIsNaNIfAnyElementIs) {
  at_every_level([](const Target &target) {
    const LoadedKernel kernel(
        reduction_kernel(DType::f32, carriers_of(Core::max, DType::f32), true, Expr::symbol("s1")), target);
    for (size_t at = 0; at < 37; ++at) {
      auto x = random_numbers<float>(37);
      x[at] = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> y(1);
      kernel.run({data_of(x), data_of(y)}, {1, 37});
      ASSERT_TRUE(std::isnan(y[0])) << "NaN at " << at;
    }
  });
}

Kernel argmax_kernel(bool rows) {
  Kernel kernel = reduction_kernel(DType::f32, argmax_carriers(DType::f32), rows, Expr::symbol("s1"));
  kernel.buffers[1] = out(DType::i64);
  Stage &stage = kernel.stages[0];
  BodyBuilder b(stage.body);
  b.yield(b.index(axis(1, Expr::symbol("s1"))));
  stage.stores[0].value = 1;
  return kernel;
}

TEST(Reduce, ArgmaxGivesTheFirstOfEqualsAndNaNWins) {
  for (bool rows : {true, false}) {
    at_every_level([&](const Target &target) {
      const LoadedKernel kernel(argmax_kernel(rows), target);
      for (int64_t n : {1, 7, 17, 1000}) {
        const int64_t m = 21;
        std::vector<float> x(static_cast<size_t>(m * n));
        std::mt19937 random(3);
        for (float &value : x) value = static_cast<float>(random() % 9);  // many ties
        if (n > 2) x[static_cast<size_t>(rows ? 5 * n + 2 : 2 * m + 5)] = std::nanf("");
        std::vector<int64_t> y(static_cast<size_t>(m));
        kernel.run({data_of(x), data_of(y)}, {m, n});
        for (int64_t i = 0; i < m; ++i) {
          int64_t best = 0;
          const auto at = [&](int64_t j) { return x[static_cast<size_t>(rows ? i * n + j : j * m + i)]; };
          for (int64_t j = 1; j < n; ++j)
            if (at(j) > at(best) || (std::isnan(at(j)) && !std::isnan(at(best)))) best = j;
          ASSERT_EQ(y[static_cast<size_t>(i)], best) << "row " << i << " of " << n;
        }
      }
    });
  }
}

// Softmax in three stages: maximum, exponentials with their sum's terms kept in the row, quotient.
Kernel softmax_kernel(bool rows) {
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1");
  const Expr i = axis(0, m), j = axis(1, n), at = rows ? i * n + j : j * m + i;
  Kernel kernel;
  kernel.symbols = {"s0", "s1"};
  kernel.buffers = {in(DType::f32), out(DType::f32), row_local(DType::f32, 1), row_local(DType::f32, n),
                    row_local(DType::f32, 1)};
  kernel.parallel = {parallel(m)};
  kernel.schedule.tiles = {rows ? 3u : 32u};
  kernel.schedule.vector = rows ? Schedule::Vector::inner : Schedule::Vector::parallel;
  Stage maximum, exponentials, sum, quotient;
  for (Stage *stage : {&maximum, &sum}) stage->axes = {reduce(n)};
  for (Stage *stage : {&exponentials, &quotient}) stage->axes = {loop(n)};
  {
    BodyBuilder b(maximum.body);
    b.yield(b.load(0, DType::f32, {at}));
    maximum.carriers = carriers_of(Core::max, DType::f32);
    maximum.stores = {store_at(2, 0)};
  }
  {
    BodyBuilder b(exponentials.body);
    b.yield(b.op(Core::exp, b.op(Core::sub, b.load(0, DType::f32, {at}), b.load(2, DType::f32, {Expr(0)}))));
    exponentials.stores = {store_at(3, j)};
  }
  {
    BodyBuilder b(sum.body);
    b.yield(b.load(3, DType::f32, {j}));
    sum.carriers = carriers_of(Core::add, DType::f32);
    sum.stores = {store_at(4, 0)};
  }
  {
    BodyBuilder b(quotient.body);
    b.yield(b.op(Core::div, b.load(3, DType::f32, {j}), b.load(4, DType::f32, {Expr(0)})));
    quotient.stores = {store_at(1, at)};
  }
  kernel.stages = {maximum, exponentials, sum, quotient};
  return kernel;
}

TEST(Reduce, StagesPassRowsThroughScratch) {
  for (bool rows : {true, false}) {
    at_every_level([&](const Target &target) {
      const LoadedKernel kernel(softmax_kernel(rows), target);
      for (int64_t n : {1, 7, 17, 300}) {
        const int64_t m = 37;
        auto x = random_numbers<float>(static_cast<size_t>(m * n));
        std::vector<float> y(x.size());
        kernel.run({data_of(x), data_of(y)}, {m, n});
        for (int64_t i = 0; i < m; ++i) {
          const auto at = [&](int64_t j) { return static_cast<size_t>(rows ? i * n + j : j * m + i); };
          double sum = 0;
          for (int64_t j = 0; j < n; ++j) sum += std::exp(static_cast<double>(x[at(j)]));
          for (int64_t j = 0; j < n; ++j)
            ASSERT_NEAR(y[at(j)], std::exp(static_cast<double>(x[at(j)])) / sum, 2e-6) << i << ", " << j << " of " << n;
        }
      }
    });
  }
}

TEST(Reduce, LoopAxesLieOutsideSeveralReduceAxes) {
  // A window of 3 x 5 slides over each row of planes: out[i, l] = sum over a < 3, b < 5 of x[i, l + 10 * a + b].
  at_every_level([](const Target &target) {
    Kernel source;
    source.buffers = {in(DType::f32), out(DType::f32)};
    source.parallel = {parallel(4)};
    source.schedule.tiles = {1};
    source.schedule.vector = Schedule::Vector::inner;
    const Expr i = axis(0, 4), l = axis(1, 70), a = axis(2, 3), c = axis(3, 5);
    Stage stage;
    stage.axes = {loop(70), reduce(3), reduce(5)};
    BodyBuilder b(stage.body);
    b.yield(b.load(0, DType::f32, {i * 100 + l + 10 * a + c}));
    stage.carriers = carriers_of(Core::add, DType::f32);
    stage.stores = {store_at(1, i * 70 + l)};
    source.stages = {stage};
    const LoadedKernel kernel(source, target);
    auto x = random_numbers<float>(400);
    std::vector<float> y(280);
    kernel.run({data_of(x), data_of(y)});
    for (size_t k = 0; k < y.size(); ++k) {
      double sum = 0;
      for (size_t row = 0; row < 3; ++row)
        for (size_t column = 0; column < 5; ++column) sum += x[k / 70 * 100 + k % 70 + 10 * row + column];
      ASSERT_NEAR(y[k], sum, 1e-4);
    }
  });
}

TEST(Reduce, TheResultDoesNotDependOnHowTasksAreCut) {
  at_every_level([](const Target &target) {
    auto x = random_numbers<float>(64 * 333);
    std::vector<std::vector<float>> results;
    for (uint32_t tile : {1, 7, 64}) {
      Kernel source = softmax_kernel(true);
      source.schedule.tiles = {tile};
      results.emplace_back(x.size());
      LoadedKernel(source, target).run({data_of(x), data_of(results.back())}, {64, 333});
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  });
}

}  // namespace
}  // namespace kiln::codegen::testing
