// The order of sums: their bits follow from the numbers, the extents that are summed over and the target's features,
// whatever the layout, the other extents, fusion, the number of threads, and whether sizes are known.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "jit/kernel/kernel.h"
#include "runtime/graph/json.h"
#include "runtime/ops/samples.h"
#include "tests/backend/cuda_backend.h"
#include "tests/backend/guarded_run.h"
#include "tests/backend/levels.h"

namespace kiln::testing {
namespace {

using ops::f32_data;

// Of very different sizes, so that each order has bits of its own.
std::vector<float> summands(int64_t count) {
  std::vector<float> all;
  uint32_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    const float size = std::ldexp(1.0F, static_cast<int>(state >> 28) - 8);
    all.push_back((static_cast<float>(state >> 8 & 0xffff) / 0x1p16F - 0.5F) * size);
  }
  return all;
}

// Of a chunk, and of all, as jit/kernel/kernel.h tells it.
float sum_of_chunk(std::span<const float> all, size_t lanes, size_t sets) {
  std::vector<std::vector<float>> partials(sets, std::vector<float>(lanes));
  const size_t in_blocks = all.size() / (sets * lanes) * (sets * lanes);
  for (size_t i = 0; i < all.size(); ++i) partials[i < in_blocks ? i / lanes % sets : 0][i % lanes] += all[i];
  std::vector<float> sum = partials[0];
  for (size_t set = 1; set < sets; ++set)
    for (size_t lane = 0; lane < lanes; ++lane) sum[lane] += partials[set][lane];
  for (size_t half = lanes / 2; half > 0; half /= 2)
    for (size_t lane = 0; lane < half; ++lane) sum[lane] += sum[lane + half];
  return sum[0];
}
float sum_in_order(std::span<const float> all, size_t lanes, size_t sets = kernel::sum_sets,
                   size_t chunk = kernel::sum_chunk) {
  if (all.size() <= chunk) return sum_of_chunk(all, lanes, sets);
  const size_t chunks = (all.size() + chunk - 1) / chunk, left = std::bit_floor(chunks - 1) * chunk;
  return sum_in_order(all.first(left), lanes, sets, chunk) + sum_in_order(all.subspan(left), lanes, sets, chunk);
}

float product_in_order(const std::vector<float> &a, const std::vector<float> &b, bool fused) {
  float sum = 0;
  for (size_t begin = 0; begin < a.size(); begin += kernel::sum_depth) {
    float part = 0;
    for (size_t k = begin; k < std::min<size_t>(a.size(), begin + kernel::sum_depth); ++k) {
      const float product = a[k] * b[k];
      part = fused ? std::fma(a[k], b[k], part) : part + product;
    }
    sum += part;
  }
  return sum;
}

std::vector<float> floats_in(const TensorData &data) {
  std::vector<float> all(data.bytes.size() / sizeof(float));
  std::memcpy(all.data(), data.bytes.data(), data.bytes.size());
  return all;
}

std::string shape_text(std::string_view dims) { return str_cat(R"({"dtype":"f32","shape":[)", dims, "]}"); }

// One graph, with what its one result should be, each element the same.
struct Sum {
  std::string inputs, parameters, nodes;  // JSON; the result is node "y"
  GraphCall call;
  float expected;
};

void expect_sum(const Sum &sum, CompileOptions options) {
  const std::string text = str_cat(R"({"kiln":1,"inputs":[)", sum.inputs, R"(],"parameters":[)", sum.parameters,
                                   R"(],"nodes":[)", sum.nodes, R"(],"outputs":[{"name":"y","value":"y"}]})");
  const Result<GraphPtr> graph = read_json(text, builtin_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().message() << text;
  for (bool fuse : {true, false}) {
    options.fuse = fuse;
    const Setting settings[] = {{1}, {options.backend == "cpu" ? most_threads : 1}};
    const Result<std::vector<Results>> results = run_guarded(*graph, {&sum.call, 1}, options, settings);
    ASSERT_TRUE(results.ok()) << results.status().message() << text;
    for (float value : floats_in(results->at(0)[0]))
      ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(sum.expected))
          << value << ", expected " << sum.expected << ", fuse " << fuse << ": " << text;
  }
}
void expect_sum(const Sum &sum, const std::string &level) {
  CompileOptions options;
  options.cpu = level;
  expect_sum(sum, options);
}

// Each row of [rows, N], or each column of [N, rows], has the same numbers.
std::vector<float> repeated(const std::vector<float> &all, int64_t times, bool as_columns) {
  std::vector<float> out;
  for (size_t i = 0; i < all.size() * static_cast<size_t>(times); ++i)
    out.push_back(all[as_columns ? i / static_cast<size_t>(times) : i % all.size()]);
  return out;
}

// The sum of each of 37 rows or columns; what is not summed over is a symbol where the other is known.
Sum sum_of_each(const std::vector<float> &all, bool columns, bool known, float expected) {
  constexpr int64_t times = 37;
  const auto n = static_cast<int64_t>(all.size());
  const std::string extent = known ? std::to_string(n) : "\"n\"", others = known ? "\"r\"" : std::to_string(times);
  const std::vector<int64_t> shape = columns ? std::vector{n, times} : std::vector{times, n};
  return {.inputs = str_cat(R"({"name":"x","type":)",
                            shape_text(columns ? str_cat(extent, ",", others) : str_cat(others, ",", extent)), "}"),
          .parameters = "",
          .nodes = str_cat(R"({"name":"y","op":"sum","inputs":["x"],"attrs":{"dims":[)", columns ? 0 : 1, "]}}"),
          .call = {known ? SymbolSizes{{"r", times}} : SymbolSizes{{"n", n}},
                   {f32_data(shape, repeated(all, times, columns))}},
          .expected = expected};
}

class Sums : public ::testing::TestWithParam<std::string> {
 protected:
  static Target target() { return *Target::by_name(GetParam()); }
};

TEST_P(Sums, HaveOneOrderAlongRowsAndColumnsOfKnownAndUnknownSizes) {
  for (int64_t n : {1, 3, 9, 15, 16, 17, 40, 64, 67, 129, 1000, 4096, 4097, 8192, 20480, 29000}) {
    const std::vector<float> all = summands(n);
    for (bool columns : {false, true})
      for (bool known : {false, true})
        expect_sum(sum_of_each(all, columns, known, sum_in_order(all, target().vector_bytes() / 4)), GetParam());
  }
}

// The same numbers in the same order of dims, though memory has them in another: the first of two sums walks them as
// one axis, the second cannot.
TEST_P(Sums, OverSeveralDimsAreInTheirRowMajorOrderWhateverTheStrides) {
  const int64_t a = 7, b = 27;
  const std::vector<float> all = summands(a * b);
  std::vector<float> transposed(all.size());
  for (int64_t i = 0; i < a; ++i)
    for (int64_t j = 0; j < b; ++j) transposed[static_cast<size_t>(j * a + i)] = all[static_cast<size_t>(i * b + j)];
  const float expected = sum_in_order(all, target().vector_bytes() / 4);
  const std::string sum = R"("op":"sum","attrs":{"dims":[]})";
  expect_sum({.inputs = str_cat(R"({"name":"x","type":)", shape_text("7,27"), "}"),
              .parameters = "",
              .nodes = str_cat(R"({"name":"y","inputs":["x"],)", sum, "}"),
              .call = {{}, {f32_data({a, b}, all)}},
              .expected = expected},
             GetParam());
  expect_sum({.inputs = str_cat(R"({"name":"x","type":)", shape_text("27,7"), "}"),
              .parameters = "",
              .nodes = str_cat(R"({"name":"t","op":"permute","inputs":["x"],"attrs":{"dims":[1,0]}},)",
                               R"({"name":"y","inputs":["t"],)", sum, "}"),
              .call = {{}, {f32_data({b, a}, transposed)}},
              .expected = expected},
             GetParam());
}

// Each of 9 elements that lie side by side is a sum over dims that lie around others in memory: from inside to outside.
TEST_P(Sums, OverDimsThatAreNoNeighboursAreInTheirRowMajorOrderInChunks) {
  constexpr int64_t columns = 9;
  struct Dims {
    int64_t a, b, c;
  };
  for (const auto [a, b, c] : {Dims{1, 7, 27}, Dims{1, 130, 67}, Dims{19, 23, 21}, Dims{2, 3, 4099}}) {
    const std::vector<float> all = summands(a * b * c);
    std::vector<float> in_memory;
    for (int64_t k = 0; k < c; ++k)
      for (int64_t j = 0; j < b; ++j)
        for (int64_t i = 0; i < a; ++i)
          in_memory.insert(in_memory.end(), columns, all[static_cast<size_t>((i * b + j) * c + k)]);
    for (bool known : {false, true}) {
      Sum sum{.inputs = str_cat(R"({"name":"x","type":)",
                                shape_text(known ? str_cat(c, ",", b, ",", a, ",9") : R"("c","b","a",9)"), "}"),
              .parameters = "",
              .nodes = R"({"name":"t","op":"permute","inputs":["x"],"attrs":{"dims":[2,1,0,3]}},
                          {"name":"y","op":"sum","inputs":["t"],"attrs":{"dims":[0,1,2]}})",
              .call = {{}, {f32_data({c, b, a, columns}, in_memory)}},
              .expected = sum_in_order(all, target().vector_bytes() / 4)};
      if (!known) sum.call.sizes = {{"a", a}, {"b", b}, {"c", c}};
      expect_sum(sum, GetParam());
    }
  }
}

// Bodies of a few operations and of many are added up by different code.
TEST_P(Sums, OfLongBodiesHaveTheSameOrder) {
  for (int64_t n : {5, 64, 100, 333, 4160, 8192, 10007}) {
    std::vector<float> all = summands(n);
    const float expected = sum_in_order(all, target().vector_bytes() / 4);
    for (bool known : {false, true}) {
      const std::string extent = known ? std::to_string(n) : "\"n\"";
      std::string nodes, last = "x";  // x * 2 / 2, often: the same numbers
      for (int i = 0; i < 12; ++i) {
        nodes += str_cat(R"({"name":"m)", i, R"(","op":")", i % 2 ? "div" : "mul", R"(","inputs":[")", last,
                         R"(","two"]},)");
        last = str_cat("m", i);
      }
      Sum sum{.inputs = str_cat(R"({"name":"x","type":)", shape_text("3," + extent), R"(},{"name":"two","type":)",
                                shape_text(""), "}"),
              .parameters = "",
              .nodes = str_cat(nodes, R"({"name":"y","op":"sum","inputs":[")", last, R"("],"attrs":{"dims":[1]}})"),
              .call = {},
              .expected = expected};
      if (!known) sum.call.sizes = {{"n", n}};
      sum.call.arguments = {f32_data({3, n}, repeated(all, 3, false)), f32_data({}, {2})};
      expect_sum(sum, GetParam());
    }
  }
}

TEST_P(Sums, OfProductsAreAddedUpPer1024OfTheirDepth) {
  const Target cpu = target();
  const bool fused = GetParam() != "x86-64";
  for (int64_t k : {1, 7, 1024, 1025, 3000}) {
    const std::vector<float> a = summands(k);
    std::vector<float> b = summands(k + 1);
    b.erase(b.begin());
    const float expected = product_in_order(a, b, fused);
    for (bool packed : {false, true}) {
      for (bool known : {false, true}) {
        const std::string depth = known ? std::to_string(k) : "\"k\"";
        for (const int64_t m : {1, 14}) {
          const int64_t n = m == 1 ? 33 : 3;
          const std::string right = str_cat(R"({"name":"b","type":)", shape_text(str_cat(depth, ",", n)), "}");
          const std::string left = str_cat(R"({"name":"a","type":)", shape_text(str_cat(m, ",", depth)), "}");
          Sum sum{.inputs = packed ? left : str_cat(left, ",", right),
                  .parameters = packed ? right : "",
                  .nodes = R"({"name":"y","op":"matmul","inputs":["a","b"]})",
                  .call = {},
                  .expected = expected};
          if (!known) sum.call.sizes = {{"k", k}};
          sum.call.arguments = {f32_data({m, k}, repeated(a, m, false)), f32_data({k, n}, repeated(b, n, true))};
          expect_sum(sum, GetParam());
        }
      }
    }
  }
}

// Rows are the work of a block of threads, columns that of a thread each; a block has as many threads as it can get.
TEST(SumsOnADevice, HaveOneOrderInBlocksOfAnySizeAndInOneThread) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  (void)cuda_on_standins();
  for (int threads : {4, 32}) {
    standin::use_driver()->reset({.max_threads = threads});
    for (int64_t n : {5, 1000, 200000}) {
      const std::vector<float> all = summands(n);
      const float expected = sum_in_order(all, kernel::device_partials, 1, kernel::device_chunk);
      for (bool columns : {false, true}) expect_sum(sum_of_each(all, columns, false, expected), cuda_options());
    }
  }
}

// 2048 + 1 is 2048 in f16, and 2049 in f32.
TEST(RelaxedRounding, KeepsValuesBetweenOpsInThirtyTwoBits) {
  const Result<GraphPtr> graph = read_json(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f16","shape":["n"]}},
        {"name":"one","type":{"dtype":"f16","shape":[]}}],
      "nodes":[{"name":"s","op":"add","inputs":["x","one"]},{"name":"y","op":"sub","inputs":["s","x"]}],
      "outputs":[{"name":"y","value":"y"}]})",
                                           builtin_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto f16 = [](std::vector<int64_t> shape, std::vector<uint16_t> bits) {
    std::vector<uint8_t> bytes(bits.size() * 2);
    std::memcpy(bytes.data(), bits.data(), bytes.size());
    return TensorData{DType::f16, std::move(shape), bytes};
  };
  constexpr uint16_t one = 0x3c00, large = 0x6800;  // 1 and 2048
  const GraphCall call{{{"n", 3}}, {f16({3}, {large, one, large}), f16({}, {one})}};
  const Setting settings[] = {{1}};
  for (const auto &[rounding, difference] : {std::pair{Rounding::strict, uint16_t{0}}, {Rounding::relaxed, one}}) {
    CompileOptions options;
    options.rounding = rounding;
    const Result<std::vector<Results>> results = run_guarded(*graph, {&call, 1}, options, settings);
    ASSERT_TRUE(results.ok()) << results.status().message();
    EXPECT_EQ(results->at(0)[0].bytes, f16({3}, {difference, one, difference}).bytes) << name_of(rounding);
  }
}

TEST(RelaxedRounding, IsAnotherKey) {
  const test::TemporaryFolder folder;
  Cache cache{folder.path(), 0};
  const Result<GraphPtr> graph = read_json(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
      "nodes":[{"name":"y","op":"sum","inputs":["x"]}],"outputs":[{"name":"y","value":"y"}]})",
                                           builtin_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const PassList passes;
  const auto lookup = [&](Rounding rounding) {
    CompileOptions options;
    options.rounding = rounding;
    CompileReport report;
    const CompileEnvironment env{.ops = builtin_ops(), .passes = passes, .cache = &cache, .pool = nullptr};
    const Result<Compiled> made = compile(env, *graph, options, report);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return report.lookup;
  };
  EXPECT_EQ(lookup(Rounding::strict), Outcome::miss);
  EXPECT_EQ(lookup(Rounding::relaxed), Outcome::miss);
  EXPECT_EQ(lookup(Rounding::relaxed), Outcome::hit);
  EXPECT_EQ(lookup(Rounding::strict), Outcome::hit);
}

INSTANTIATE_TEST_SUITE_P(Levels, Sums, ::testing::ValuesIn(levels_here()), level_in_name);

}  // namespace
}  // namespace kiln::testing
