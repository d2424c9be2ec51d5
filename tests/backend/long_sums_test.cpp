// Sums of millions of numbers are about as exact as sums in pairs: beside what float64 makes of the same numbers, along
// every layout, in each element type, and the same bits whether sizes are known, and for every number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "jit/base/small_float.h"
#include "runtime/graph/json.h"
#include "runtime/ops/samples.h"
#include "tests/backend/cuda_backend.h"
#include "tests/backend/guarded_run.h"
#include "tests/backend/levels.h"

namespace kiln::testing {
namespace {

constexpr double f32_epsilon = 0x1p-23;

enum class Kind { near_1000, alternating, around_0 };

// In a fixed order, as f32 has them.
std::vector<float> numbers(int64_t count, Kind kind) {
  std::vector<float> all(static_cast<size_t>(count));
  uint32_t state = 7;
  for (size_t i = 0; i < all.size(); ++i) {
    state = state * 1664525 + 1013904223;
    const float u = static_cast<float>(state >> 8) * 0x1p-24F;
    all[i] = kind == Kind::around_0 ? u - 0.5F : kind == Kind::near_1000 || i % 2 == 0 ? 1000 + u : -1000 - u;
  }
  return all;
}

std::vector<double> values_of(const TensorData &data) {
  std::vector<double> values;
  const auto copy = [&]<class T>(T, const auto &as_double) {
    std::vector<T> all(data.bytes.size() / sizeof(T));
    std::memcpy(all.data(), data.bytes.data(), data.bytes.size());
    for (T each : all) values.push_back(as_double(each));
  };
  if (data.dtype == DType::f64)
    copy(double{}, [](double x) { return x; });
  else if (data.dtype == DType::f32)
    copy(float{}, [](float x) { return double{x}; });
  else
    copy(uint16_t{}, [&](uint16_t x) { return decode_float(x, small_format(data.dtype)); });
  return values;
}

TensorData data_of(DType type, std::vector<int64_t> shape, const std::vector<float> &all) {
  if (type == DType::f32) return ops::f32_data(std::move(shape), all);
  if (type == DType::f64) return ops::tensor_of(type, std::move(shape), std::vector<double>(all.begin(), all.end()));
  std::vector<uint16_t> bits;
  for (float x : all) bits.push_back(static_cast<uint16_t>(encode_float(x, small_format(type))));
  return ops::tensor_of(type, std::move(shape), bits);
}

std::string list_of(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t each : numbers) text += str_cat(text.empty() ? "" : ",", each);
  return text;
}

// The results of one node each, of x, by one thread and by most_threads; sizes are known, or all are symbols.
Results run_nodes(const std::vector<std::string> &nodes, const TensorData &x, bool known,
                  const CompileOptions &options) {
  std::string dims, outputs, all_nodes;
  GraphCall call{{}, {x}};
  for (size_t d = 0; d < x.shape.size(); ++d) {
    dims += str_cat(d ? "," : "", known ? std::to_string(x.shape[d]) : str_cat("\"s", d, "\""));
    if (!known) call.sizes[str_cat("s", d)] = x.shape[d];
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    all_nodes += str_cat(n ? "," : "", R"({"name":"y)", n, R"(","inputs":["x"],)", nodes[n], "}");
    outputs += str_cat(n ? "," : "", R"({"name":"y)", n, R"(","value":"y)", n, R"("})");
  }
  const std::string text =
      str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":")", name_of(x.dtype), R"(","shape":[)", dims,
              R"(]}}],"nodes":[)", all_nodes, R"(],"outputs":[)", outputs, "]}");
  const Result<GraphPtr> graph = read_json(text, builtin_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message() << text;
  const Setting settings[] = {{1}, {options.backend == "cpu" ? most_threads : 1}};
  const Result<std::vector<Results>> results =
      graph.ok() ? run_guarded(*graph, {&call, 1}, options, settings) : graph.status();
  EXPECT_TRUE(results.ok()) << results.status().message() << text;
  return results.ok() ? results->at(0) : Results{};
}

// Known and unknown sizes have the same bits.
Results run_nodes(const std::vector<std::string> &nodes, const TensorData &x, const CompileOptions &options) {
  const Results known = run_nodes(nodes, x, true, options), unknown = run_nodes(nodes, x, false, options);
  for (size_t i = 0; i < known.size() && i < unknown.size(); ++i)
    EXPECT_EQ(known[i].bytes, unknown[i].bytes) << nodes[i];
  return known;
}

std::string node_over(std::string_view op, const std::vector<int64_t> &dims) {
  return str_cat(R"("op":")", op, R"(","attrs":{"dims":[)", list_of(dims), "]}");
}

// What is summed up for each result: element `at` belongs to `group`.
struct SumLayout {
  std::string name;
  std::vector<int64_t> shape, dims;
  std::function<size_t(size_t at)> group;
  size_t groups = 1;
};
std::vector<SumLayout> sum_layouts(int64_t n) {
  const auto all = static_cast<size_t>(n);
  const auto whole = [](size_t) { return size_t{0}; };
  return {{"all", {n}, {0}, whole},
          {"all of three dims", {n / (127 * 129), 127, 129}, {}, whole},
          {"rows", {2, n}, {1}, [all](size_t at) { return at / all; }, 2},
          {"columns", {n, 3}, {0}, [](size_t at) { return at % 3; }, 3},
          {"middle", {2, n, 3}, {1}, [all](size_t at) { return at / (3 * all) * 3 + at % 3; }, 6},
          {"around", {n / 997, 3, 997}, {0, 2}, [](size_t at) { return at / 997 % 3; }, 3},
          {"many columns", {n / 300, 300}, {0}, [](size_t at) { return at % 300; }, 300}};
}

// sum, mean and var of each group against float64. Errors are counted in units of `epsilon` of the sum of magnitudes:
// sums in pairs have a few, one after the other tens of thousands.
void expect_close(const SumLayout &layout, DType type, Kind kind, double epsilon, const CompileOptions &options) {
  const int64_t count = std::accumulate(layout.shape.begin(), layout.shape.end(), int64_t{1}, std::multiplies<>());
  const TensorData x = data_of(type, layout.shape, numbers(count, kind));
  const std::vector<double> values = values_of(x);
  std::vector<long double> sum(layout.groups), magnitudes(layout.groups), squares(layout.groups);
  for (size_t i = 0; i < values.size(); ++i) {
    sum[layout.group(i)] += values[i];
    magnitudes[layout.group(i)] += std::abs(values[i]);
  }
  const long double n = static_cast<long double>(values.size()) / static_cast<long double>(layout.groups);
  for (size_t i = 0; i < values.size(); ++i) {
    const long double distance = values[i] - sum[layout.group(i)] / n;
    squares[layout.group(i)] += distance * distance;
  }
  const Results results = run_nodes(
      {node_over("sum", layout.dims), node_over("mean", layout.dims), node_over("var", layout.dims)}, x, options);
  ASSERT_EQ(results.size(), 3u);
  const std::vector<double> sums = values_of(results[0]), means = values_of(results[1]), vars = values_of(results[2]);
  for (size_t g = 0; g < layout.groups; ++g) {
    SCOPED_TRACE(str_cat(layout.name, " of ", name_of(type), ", kind ", static_cast<int>(kind), ", result ", g));
    EXPECT_NEAR(sums[g], static_cast<double>(sum[g]), 4 * epsilon * static_cast<double>(magnitudes[g]));
    EXPECT_NEAR(means[g], static_cast<double>(sum[g] / n), 4 * epsilon * static_cast<double>(magnitudes[g] / n));
    const double var = static_cast<double>(squares[g] / (n - 1));
    EXPECT_NEAR(vars[g], var, 16 * epsilon * var) << "two sums, and a difference that is squared";
  }
}

class LongSums : public ::testing::TestWithParam<std::string> {
 protected:
  static CompileOptions options() {
    CompileOptions options;
    options.cpu = GetParam();
    return options;
  }
};

TEST_P(LongSums, OfMillionsOfF32AreCloseToThoseOfF64InEveryLayout) {
  for (const SumLayout &layout : sum_layouts(2'000'003))
    for (Kind kind : {Kind::near_1000, Kind::alternating})
      expect_close(layout, DType::f32, kind, f32_epsilon, options());
}

TEST_P(LongSums, OfTwentyMillionsAreAsClose) {
  expect_close(sum_layouts(20'000'000)[0], DType::f32, Kind::near_1000, f32_epsilon, options());
}

TEST_P(LongSums, OfF64AreCloseToThoseOfLongDouble) {
  expect_close(sum_layouts(2'000'003)[0], DType::f64, Kind::near_1000, 0x1p-52, options());
  expect_close(sum_layouts(1'000'003)[3], DType::f64, Kind::near_1000, 0x1p-52, options());
}

// They are summed in f32 and rounded once; of f16 the sum is beyond its range, and is left out by what is around 0.
TEST_P(LongSums, OfSixteenBitsAreRoundedOnce) {
  for (size_t layout : {0, 3}) {
    expect_close(sum_layouts(1'000'003)[layout], DType::bf16, Kind::near_1000, 0x1p-9, options());
    expect_close(sum_layouts(1'000'003)[layout], DType::f16, Kind::around_0, 0x1p-11, options());
  }
}

TEST_P(LongSums, InAnyOrderAreAsClose) {
  CompileOptions relaxed = options();
  relaxed.rounding = Rounding::relaxed;
  for (const SumLayout &layout : sum_layouts(1'000'003))
    expect_close(layout, DType::f32, Kind::near_1000, f32_epsilon, relaxed);
}

// What is one kernel a node is not cut.
void expect_same_bits_cut_or_not(const std::vector<size_t> &which, int64_t n, CompileOptions options) {
  for (const size_t layout : which) {
    const auto [name, shape, dims, group, groups] = sum_layouts(n)[layout];
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    const TensorData x = data_of(DType::f32, shape, numbers(count, Kind::near_1000));
    std::vector<std::vector<uint8_t>> bits;
    for (const bool fuse : {true, false}) {
      options.fuse = fuse;
      const Results results = run_nodes({node_over("sum", dims)}, x, true, options);
      ASSERT_EQ(results.size(), 1u);
      bits.push_back(results[0].bytes);
    }
    EXPECT_EQ(bits[0], bits[1]) << name;
  }
}

TEST_P(LongSums, AreTheSameBitsCutIntoGroupsOrNot) {
  expect_same_bits_cut_or_not({0, 1, 2, 3, 4, 5, 6}, 2'000'003, options());
}

TEST_P(LongSums, InOpsThatSumUpInsideAreClose) {
  constexpr int64_t n = 2'000'003;
  const std::vector<float> all = numbers(n, Kind::near_1000);
  const Results results =
      run_nodes({R"("op":"softmax")", R"("op":"logsumexp")", R"("op":"norm")", R"("op":"layer_norm")"},
                ops::f32_data({1, n}, all), options());
  ASSERT_EQ(results.size(), 4u);
  long double exps = 0, squares = 0, sum = 0, distances = 0;
  for (double x : all) {
    exps += std::exp(x - 1000);
    squares += x * x;
    sum += x;
  }
  for (double x : all) distances += (x - sum / n) * (x - sum / n);
  const std::vector<double> softmax = values_of(results[0]), layer_norm = values_of(results[3]);
  EXPECT_NEAR(values_of(results[1])[0], static_cast<double>(1000 + std::log(exps)), 1000 * f32_epsilon);
  const auto norm = static_cast<double>(std::sqrt(squares));
  EXPECT_NEAR(values_of(results[2])[0], norm, 2 * f32_epsilon * norm);
  for (size_t i : {0, 1, 1'000'000, 2'000'002}) {
    const auto part = static_cast<double>(std::exp(all[i] - 1000.0L) / exps);
    EXPECT_NEAR(softmax[i], part, 8 * f32_epsilon * part);
    const auto normal = static_cast<double>((all[i] - sum / n) / std::sqrt(distances / n + 1e-5L));
    EXPECT_NEAR(layer_norm[i], normal, 1000 * f32_epsilon * 4) << "the mean has the errors of numbers near 1000";
  }
}

TEST(LongSumsOnADevice, OfMillionsAreCloseToThoseOfF64) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  (void)cuda_on_standins();
  standin::use_driver()->reset({.max_threads = 4});
  for (Rounding rounding : {Rounding::strict, Rounding::relaxed}) {
    CompileOptions options = cuda_options();
    options.rounding = rounding;
    for (size_t layout : {0, 3, 5, 6})
      expect_close(sum_layouts(1'800'003)[layout], DType::f32, Kind::near_1000, f32_epsilon, options);
  }
}

TEST(LongSumsOnADevice, AreTheSameBitsCutIntoMoreGroupsThanABlockHasThreadsOrNot) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  (void)cuda_on_standins();
  standin::use_driver()->reset({.max_threads = 4});
  expect_same_bits_cut_or_not({0}, 300 * 65536 + 17, cuda_options());
}

INSTANTIATE_TEST_SUITE_P(Levels, LongSums, ::testing::ValuesIn(levels_here()), level_in_name);

}  // namespace
}  // namespace kiln::testing
