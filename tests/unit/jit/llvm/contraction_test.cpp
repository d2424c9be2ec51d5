// Contractions against plain loops in double: all layouts, edges of every block, epilogues, predicates.
#include <cmath>
#include <random>

#include "tests/unit/jit/llvm/compiled_kernel.h"

namespace kiln::codegen::testing {
namespace {

// How a test's product is laid out. Sizes are symbols ("s0" to "s3": batch, m, n, k) unless given.
struct Product {
  bool transpose_a = false, transpose_b = false;
  bool packed_b = false;
  bool transpose_out = false;
  bool epilogue = false;  // max(sum + bias[n], 0) + residual
  DType type = DType::f32;
  Expr batch = Expr::symbol("s0"), m = Expr::symbol("s1"), n = Expr::symbol("s2"), k = Expr::symbol("s3");
};

std::string name_of(const Product &p) {
  return str_cat(p.transpose_a ? "a^T " : "a ", p.transpose_b ? "b^T " : "b ", p.packed_b ? "packed " : "",
                 p.transpose_out ? "out^T " : "", p.epilogue ? "epilogue " : "", name_of(p.type));
}

struct Micro {
  uint32_t mr, nr;
};
Micro micro_of(const Target &target) {
  return target.vector_bytes() == 64 ? Micro{12, 32} : target.vector_bytes() == 32 ? Micro{6, 16} : Micro{4, 8};
}

Kernel product_kernel(const Product &p, const Target &target, uint32_t m_panels = 3, uint32_t n_panels = 2,
                      uint32_t kc = 48) {
  Kernel kernel;
  kernel.symbols = {"s0", "s1", "s2", "s3"};
  kernel.buffers = {in(p.type), in(p.type), in(p.type), in(p.type), out(p.type)};
  kernel.parallel = {parallel(p.batch), parallel(p.m), parallel(p.n)};
  const auto [mr, nr] = micro_of(target);
  kernel.schedule.vector = Schedule::Vector::inner;
  kernel.schedule.mr = mr;
  kernel.schedule.nr = nr;
  kernel.schedule.kc = kc;
  kernel.schedule.tiles = {1, mr * m_panels, nr * n_panels};
  kernel.schedule.vector_m = p.transpose_out;
  const Expr b = axis(0, p.batch), i = axis(1, p.m), j = axis(2, p.n), k = axis(3, p.k);
  const Expr out_index = p.transpose_out ? (b * p.n + j) * p.m + i : (b * p.m + i) * p.n + j;

  Stage stage;
  stage.axes = {reduce(p.k)};
  Contract &contract = stage.contract.emplace();
  contract.accumulator = p.type;
  BodyBuilder a_builder(contract.a), b_builder(contract.b), epilogue(stage.body);
  a_builder.yield(a_builder.load(0, p.type, {p.transpose_a ? (b * p.k + k) * p.m + i : (b * p.m + i) * p.k + k}));
  Expr b_index = p.transpose_b ? (b * p.n + j) * p.k + k : (b * p.k + k) * p.n + j;
  if (p.packed_b) {
    const Expr width = static_cast<int64_t>(nr), panels = ceil_div(p.n, width);
    contract.panel = nr;
    contract.packed_buffer = 1;
    contract.packed_offset = b * panels * p.k * width;
    b_index = ((b * panels + floor_div(j, width)) * p.k + k) * width + mod(j, width);
  }
  b_builder.yield(b_builder.load(1, p.type, {b_index}));
  Value accumulator;
  accumulator.op = Core::accumulator;
  accumulator.type = p.type;
  stage.body.values.push_back(accumulator);
  int sum = 0;
  if (p.epilogue) {
    sum = epilogue.op(Core::add, sum, epilogue.load(2, p.type, {j}));
    sum = epilogue.op(Core::max, sum, epilogue.constant(p.type, 0));
    sum = epilogue.op(Core::add, sum, epilogue.load(3, p.type, {out_index}));
  }
  epilogue.yield(sum);
  stage.stores = {store_at(4, out_index)};
  kernel.stages = {stage};
  return kernel;
}

template <class T>
std::vector<T> random_values(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> uniform(-64, 64);
  std::vector<T> values(static_cast<size_t>(count));
  for (T &value : values) value = static_cast<T>(uniform(random)) / static_cast<T>(std::is_integral_v<T> ? 1 : 32);
  return values;
}

// b [batch][k][n] -> [batch][n / nr][k][nr]
template <class T>
std::vector<T> pack(const std::vector<T> &b, int64_t batch, int64_t n, int64_t k, int64_t nr) {
  const int64_t panels = (n + nr - 1) / nr;
  std::vector<T> packed(static_cast<size_t>(batch * panels * k * nr));
  for (int64_t z = 0; z < batch; ++z)
    for (int64_t x = 0; x < k; ++x)
      for (int64_t j = 0; j < n; ++j)
        packed[static_cast<size_t>(((z * panels + j / nr) * k + x) * nr + j % nr)] =
            b[static_cast<size_t>((z * k + x) * n + j)];
  return packed;
}

struct Sizes {
  int64_t batch, m, n, k;
};

template <class T>
void check(const LoadedKernel &kernel, const Product &p, const Target &target, const Sizes &size) {
  const auto [batch, m, n, k] = size;
  SCOPED_TRACE(str_cat(name_of(p), ", ", batch, " x ", m, " x ", n, " x ", k));
  std::vector<T> a = random_values<T>(batch * m * k, 1), b = random_values<T>(batch * k * n, 2),
                 bias = random_values<T>(n, 3), residual = random_values<T>(batch * m * n, 4);
  std::vector<T> b_memory = p.packed_b ? pack(b, batch, n, k, micro_of(target).nr) : b;
  const T untouched = 77;
  std::vector<T> got(static_cast<size_t>(batch * m * n) + 16, untouched);
  EXPECT_EQ(
      kernel.run({data_of(a), data_of(b_memory), data_of(bias), data_of(residual), data_of(got)}, {batch, m, n, k}),
      0u);
  for (int64_t z = 0; z < batch; ++z) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, magnitude = 1;
        for (int64_t x = 0; x < k; ++x) {
          const double left =
              static_cast<double>(a[static_cast<size_t>(p.transpose_a ? (z * k + x) * m + i : (z * m + i) * k + x)]);
          const double right = static_cast<double>(
              b[static_cast<size_t>(p.transpose_b && !p.packed_b ? (z * n + j) * k + x : (z * k + x) * n + j)]);
          sum += left * right;
          magnitude += std::abs(left * right);
        }
        const auto at = static_cast<size_t>(p.transpose_out ? (z * n + j) * m + i : (z * m + i) * n + j);
        if (p.epilogue)
          sum = std::max(sum + static_cast<double>(bias[static_cast<size_t>(j)]), 0.0) +
                static_cast<double>(residual[at]);
        ASSERT_NEAR(static_cast<double>(got[at]), sum, 1e-6 * magnitude) << "at " << z << ", " << i << ", " << j;
      }
    }
  }
  for (size_t at = static_cast<size_t>(batch * m * n); at < got.size(); ++at)
    ASSERT_EQ(got[at], untouched) << "beyond the end";
}

const std::vector<int64_t> edge_sizes{0, 1, 7, 33, 70, 130};

TEST(Contraction, MultipliesEveryLayoutAtEverySymbolicSize) {
  at_every_level([](const Target &target) {
    for (int layout = 0; layout < 16; ++layout) {
      const Product p{.transpose_a = (layout & 1) != 0,
                      .transpose_b = (layout & 2) != 0,
                      .transpose_out = (layout & 4) != 0,
                      .epilogue = (layout & 8) != 0};
      const LoadedKernel kernel(product_kernel(p, target), target);
      for (int64_t m : edge_sizes)
        for (int64_t n : edge_sizes)
          for (int64_t k : edge_sizes) check<float>(kernel, p, target, {1, m, n, k});
    }
  });
}

TEST(Contraction, ReadsPackedPanelsInPlace) {
  at_every_level([](const Target &target) {
    const Product p{.packed_b = true, .epilogue = true};
    const LoadedKernel kernel(product_kernel(p, target), target);
    for (int64_t m : edge_sizes)
      for (int64_t n : edge_sizes)
        for (int64_t k : edge_sizes) check<float>(kernel, p, target, {2, m, n, k});
  });
}

TEST(Contraction, KeepsBatchesApart) {
  at_every_level([](const Target &target) {
    const Product p{.transpose_b = true};
    const LoadedKernel kernel(product_kernel(p, target), target);
    for (int64_t batch : {0, 1, 5}) check<float>(kernel, p, target, {batch, 19, 37, 50});
  });
}

TEST(Contraction, TakesSizesKnownWhenCompiled) {
  at_every_level([](const Target &target) {
    for (const Sizes &size : {Sizes{1, 1, 64, 40}, Sizes{1, 13, 5, 96}, Sizes{2, 72, 128, 100}, Sizes{1, 5, 5, 0},
                              Sizes{1, 24, 32, 1}, Sizes{1, 8, 33, 200}}) {
      for (bool transpose_out : {false, true}) {
        const Product p{.transpose_out = transpose_out,
                        .epilogue = true,
                        .batch = size.batch,
                        .m = size.m,
                        .n = size.n,
                        .k = size.k};
        check<float>(LoadedKernel(product_kernel(p, target), target), p, target, size);
      }
    }
  });
}

TEST(Contraction, HasMicrokernelsOfAnyHeight) {
  at_every_level([](const Target &target) {
    for (uint32_t mr = 1; mr <= 13; ++mr) {
      for (bool transpose_a : {false, true}) {
        const Product p{.transpose_a = transpose_a};
        Kernel kernel = product_kernel(p, target);
        kernel.schedule.mr = mr;
        kernel.schedule.tiles[1] = 2 * mr;
        const LoadedKernel loaded(kernel, target);
        for (int64_t m : {1, 2, 5, 11, 12, 13, 29}) check<float>(loaded, p, target, {1, m, 21, 60});
      }
    }
  });
}

TEST(Contraction, TakesWiderTypes) {
  at_every_level([](const Target &target) {
    for (bool transpose_b : {false, true}) {
      const Product f64{.transpose_b = transpose_b, .epilogue = true, .type = DType::f64};
      const LoadedKernel doubles(product_kernel(f64, target), target);
      const Product i64{.transpose_b = transpose_b, .type = DType::i64};
      const LoadedKernel integers(product_kernel(i64, target), target);
      for (const Sizes &size : {Sizes{1, 13, 37, 70}, Sizes{2, 1, 130, 7}}) {
        check<double>(doubles, f64, target, size);
        check<int64_t>(integers, i64, target, size);
      }
    }
  });
}

// Row i of a is windows of 3 that begin at i, of `channels` lines of x.
template <class T>
void check_windows(const Target &target, DType type, int64_t rows, int64_t channels) {
  SCOPED_TRACE(str_cat(name_of(type), ", ", rows, " rows, ", channels, " channels"));
  const int64_t columns = 21, depth = channels * 3, length = rows + 2;
  const Product p{.type = type, .batch = 1, .m = rows, .n = columns, .k = depth};
  Kernel kernel = product_kernel(p, target);
  kernel.schedule.mr = static_cast<uint32_t>(std::min<int64_t>(rows, kernel.schedule.mr));
  kernel.schedule.tiles[1] = kernel.schedule.mr;
  Body &body = kernel.stages[0].contract->a;
  body = {};
  BodyBuilder a(body);
  const Expr i = axis(1, p.m), k = axis(3, p.k);
  a.yield(a.load(0, type, {floor_div(k, 3) * length + mod(k, 3) + i}));
  const LoadedKernel loaded(kernel, target);
  std::vector<T> x = random_values<T>(channels * length, 1), b = random_values<T>(depth * columns, 2),
                 got(static_cast<size_t>(rows * columns)), none(1);
  loaded.run({data_of(x), data_of(b), data_of(none), data_of(none), data_of(got)}, {0, 0, 0, 0});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0, magnitude = 1;
      for (int64_t d = 0; d < depth; ++d) {
        const double term = static_cast<double>(x[static_cast<size_t>(d / 3 * length + d % 3 + r)]) *
                            static_cast<double>(b[static_cast<size_t>(d * columns + j)]);
        sum += term;
        magnitude += std::abs(term);
      }
      if (std::is_integral_v<T>) sum = static_cast<double>(static_cast<T>(static_cast<int64_t>(sum)));  // it wraps
      ASSERT_NEAR(static_cast<double>(got[static_cast<size_t>(r * columns + j)]), sum, 1e-6 * magnitude)
          << r << ", " << j;
    }
  }
}

TEST(Contraction, ReadsRowsOfWindowsInEachTypeHoweverFewThereAre) {
  at_every_level([](const Target &target) {
    for (const int64_t rows : {1, 2, 3, 6, 7, 23})
      for (const int64_t channels : {1, 3, 40}) {
        check_windows<float>(target, DType::f32, rows, channels);
        check_windows<double>(target, DType::f64, rows, channels);
        check_windows<int16_t>(target, DType::i16, rows, channels);
        check_windows<int64_t>(target, DType::i64, rows, channels);
      }
  });
}

// x [C, H, W] with a border of `padding` zeros, w [O, C, 3, 3], out [O, H', W'].
TEST(Contraction, ConvolvesWithPaddingAndStride) {
  at_every_level([](const Target &target) {
    for (const auto &[stride, padding] : {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {1, 0}, {3, 2}}) {
      SCOPED_TRACE(str_cat("stride ", stride, ", padding ", padding));
      const int64_t channels = 5, height = 14, width = 11, outputs = 37;
      const int64_t rows = (height + 2 * padding - 3) / stride + 1, columns = (width + 2 * padding - 3) / stride + 1;
      const int64_t depth = channels * 9;
      Product p{.transpose_b = true,
                .transpose_out = true,
                .epilogue = true,
                .batch = 1,
                .m = rows * columns,
                .n = outputs,
                .k = depth};
      Kernel kernel = product_kernel(p, target);
      Body &body = kernel.stages[0].contract->a;
      body = {};
      BodyBuilder a(body);
      const Expr i = axis(1, p.m), k = axis(3, p.k);
      const Expr y = floor_div(i, columns) * stride + mod(floor_div(k, 3), 3) - padding;
      const Expr x = mod(i, columns) * stride + mod(k, 3) - padding;
      const auto inside = [&](const Expr &e, int64_t extent) {
        const int index = a.index(e);
        return a.op(Core::logical_and, a.op(Core::ge, index, a.constant(DType::i64, 0)),
                    a.op(Core::lt, index, a.constant(DType::i64, static_cast<double>(extent))));
      };
      const int valid = a.op(Core::logical_and, inside(y, height), inside(x, width));
      a.yield(a.load(0, DType::f32, {(floor_div(k, 9) * height + y) * width + x}, valid));
      const LoadedKernel loaded(kernel, target);

      std::vector<float> image = random_values<float>(channels * height * width, 1),
                         weights = random_values<float>(outputs * depth, 2), bias = random_values<float>(outputs, 3),
                         residual = random_values<float>(outputs * rows * columns, 4), got(residual.size());
      loaded.run({data_of(image), data_of(weights), data_of(bias), data_of(residual), data_of(got)}, {0, 0, 0, 0});
      for (int64_t o = 0; o < outputs; ++o) {
        for (int64_t r = 0; r < rows * columns; ++r) {
          double sum = bias[static_cast<size_t>(o)], magnitude = 1;
          for (int64_t d = 0; d < depth; ++d) {
            const int64_t at_y = r / columns * stride + d / 3 % 3 - padding,
                          at_x = r % columns * stride + d % 3 - padding;
            if (at_y < 0 || at_y >= height || at_x < 0 || at_x >= width) continue;
            const double term = static_cast<double>(weights[static_cast<size_t>(o * depth + d)]) *
                                static_cast<double>(image[static_cast<size_t>((d / 9 * height + at_y) * width + at_x)]);
            sum += term;
            magnitude += std::abs(term);
          }
          const auto at = static_cast<size_t>(o * rows * columns + r);
          ASSERT_NEAR(got[at], std::max(sum, 0.0) + static_cast<double>(residual[at]), 1e-6 * magnitude)
              << o << ", " << r;
        }
      }
    }
  });
}

}  // namespace
}  // namespace kiln::codegen::testing
