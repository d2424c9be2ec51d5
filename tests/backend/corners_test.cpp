// Sizes and values where a formula has a corner: what samples, which go to every type and to the outside, do not have.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/graph/json.h"
#include "runtime/ops/samples.h"
#include "tests/backend/backends.h"

namespace kiln::testing {
namespace {

using ops::f32;
using ops::f32_data;
using ops::sym;

Result<std::vector<TensorData>> run_sample(const Backend &backend, std::string_view op, const Sample &sample) {
  KILN_ASSIGN(const Case made, make_case(*find_op(op), sample, 1));
  return backend.run(made);
}

// The first result of every backend that runs the op.
void expect_everywhere(std::string_view op, const Sample &sample, const std::vector<double> &y) {
  for (const Backend &backend : backends_and_reference()) {
    if (backend.excluded.contains(op)) continue;
    const Result<std::vector<TensorData>> got = run_sample(backend, op, sample);
    ASSERT_TRUE(got.ok()) << backend.name << ": " << got.status().message();
    const RefTensor all = to_reference((*got)[0]);
    ASSERT_EQ(all.f.size(), y.size()) << backend.name;
    for (size_t k = 0; k < y.size(); ++k)
      EXPECT_TRUE((std::isnan(y[k]) && std::isnan(all.f[k])) ||
                  (all.f[k] == y[k] && std::signbit(all.f[k]) == std::signbit(y[k])))
          << op << " on " << backend.name << ", element " << k << " is " << all.f[k] << ", expected " << y[k];
  }
}

void expect_agreement(std::string_view op, const Sample &sample) {
  const Result<Case> made = make_case(*find_op(op), sample, 1);
  ASSERT_TRUE(made.ok()) << made.status().message();
  for (const Backend &backend : backends()) {
    if (backend.excluded.contains(op)) continue;
    EXPECT_EQ(check(backend, *made), "") << op;
  }
}

TEST(Corners, AQuotientRoundedDownTo0HasTheSignOfTheQuotient) {
  const float inf = INFINITY;
  expect_everywhere("floor_divide",
                    {.inputs = {f32({8}), f32({8})},
                     .given = {{0, f32_data({8}, {-1.f, -0.5f, -0.f, 0.f, -1.f, 1.f, -1.f, 0.25f})},
                               {1, f32_data({8}, {-2.5f, -1.f, 1.f, -1.f, -inf, inf, inf, -0.5f})}}},
                    {0., 0., -0., -0., 0., 0., -1., -1.});
}

TEST(Corners, HuberOfAKneeThatIsNeverReachedIsAParabola) {
  expect_everywhere("huber_loss",
                    {.inputs = {f32({3}), f32({3})},
                     .attrs = {{"delta", static_cast<double>(INFINITY)}, {"reduction", "none"}},
                     .given = {{0, f32_data({3}, {1, -3, 4})}, {1, f32_data({3}, {1, 1, 2})}}},
                    {0, 8, 2});
}

TEST(Corners, ATargetThatIsInfiniteHasAnInfiniteLoss) {
  expect_everywhere("binary_cross_entropy_with_logits",
                    {.inputs = {f32({2}), f32({2})},
                     .attrs = {{"reduction", "none"}},
                     .given = {{0, f32_data({2}, {1, 1})}, {1, f32_data({2}, {INFINITY, -INFINITY})}}},
                    {-INFINITY, INFINITY});
}

TEST(Corners, AnInfiniteThetaTimesTheMiddleOfOneRowIsNaN) {
  expect_everywhere("affine_grid",
                    {.inputs = {f32({1, 2, 3})},
                     .attrs = {{"size", AttrValue(Shape{1, 1})}, {"align_corners", true}},
                     .given = {{0, f32_data({1, 2, 3}, {INFINITY, 0, 1, 0, 1, 2})}}},
                    {NAN, 2});
}

TEST(Corners, StatisticsOfNothingAreNaN) {
  for (const std::string op : {"layer_norm", "rms_norm"})
    for (const Backend &backend : backends_and_reference()) {
      const Result<std::vector<TensorData>> got = run_sample(
          backend, op, {.inputs = {f32({2, sym("n")})}, .attrs = {{"statistics", true}}, .sizes = {{"n", 0}}});
      ASSERT_TRUE(got.ok()) << backend.name << ": " << got.status().message();
      for (size_t k = 1; k < got->size(); ++k)
        for (const double x : to_reference((*got)[k]).f) EXPECT_TRUE(std::isnan(x)) << op << " on " << backend.name;
    }
}

TEST(Corners, ASizeThatMustBe1AtACallNeedNotBeKnown) {
  for (const std::string op : {"layer_norm_backward", "rms_norm_backward"}) {
    std::vector<TensorType> inputs = {f32({3, 5}), f32({3, sym("k")})};
    if (op == "layer_norm_backward") inputs.push_back(inputs.back());
    inputs.push_back(f32({3, 5}));
    expect_agreement(op, {.inputs = inputs, .sizes = {{"k", 1}}});
  }
}

TEST(Corners, ALengthTellsHowManyPairsOfATransformThereAre) {
  for (const int64_t n : {8, 34, 35, 64})
    expect_agreement("irfft",
                     {.inputs = {f32({2, sym("k"), 2})}, .attrs = {{"n", Dim(n)}}, .sizes = {{"k", n / 2 + 1}}});
}

TEST(Corners, ADirectTransformHasTheBitsOfOneWhoseLengthIsNotKnown) {
  for (const std::string op : {"rfft", "irfft"}) {
    const auto shape = [&](const Dim &n) { return op == "rfft" ? Shape{3, n} : Shape{3, n, 2}; };
    const auto sizes =
        op == "rfft" ? std::map<std::string, int64_t>{{"n", 60}} : std::map<std::string, int64_t>{{"n", 31}};
    const TensorType known = f32(shape(sizes.at("n"))), unknown = f32(shape(sym("n")));
    const Backend cpu = compiled("cpu", "native", true);
    const auto values = run_sample(cpu, op, {.inputs = {known}, .attrs = {{"direct", true}}});
    const auto others = run_sample(cpu, op, {.inputs = {unknown}, .attrs = {{"direct", true}}, .sizes = sizes});
    ASSERT_TRUE(values.ok() && others.ok()) << values.status().message() << others.status().message();
    EXPECT_EQ((*values)[0], (*others)[0]) << op;
    const Result<Case> refused = make_case(*find_op(op), {.inputs = {unknown}, .sizes = sizes}, 1);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().message().find("expected a number, or `direct`"), std::string::npos)
        << refused.status().message();
  }
}

TEST(Corners, NmsKeepsAllWhereMoreMayStayThanAFloatCounts) {
  expect_agreement("nms", {.inputs = {f32({sym("n"), 4}), f32({sym("n")})},
                           .attrs = {{"max", Dim((int64_t{1} << 62) + 1)}},
                           .sizes = {{"n", 9}}});
}

TEST(Corners, AConvolutionOfWhichNoSizeIsKnownIsCompiled) {
  expect_agreement(
      "conv3d",
      {.inputs = {f32({sym("n"), sym("c"), sym("d"), sym("h"), sym("w")}),
                  f32({sym("o"), sym("c"), sym("kd"), sym("kh"), sym("kw")})},
       .attrs = {{"stride", ops::ints({2, 2, 2})},
                 {"dilation", ops::ints({3, 3, 3})},
                 {"padding", ops::ints({1, 1, 1})}},
       .sizes = {{"n", 1}, {"c", 2}, {"d", 7}, {"h", 8}, {"w", 9}, {"o", 3}, {"kd", 2}, {"kh", 2}, {"kw", 2}}});
}

// A row's factor is one number for all lanes that pack the row, also for lanes of a row that there is none of; what
// lies behind the factors is guarded.
TEST(Corners, AConvolutionReadsNoFactorOfARowBehindTheLast) {
  for (const int64_t rows : {12, 250}) {  // pixels as rows of a product, and as its columns
    const std::string json = str_cat(R"({"kiln":1,
      "inputs":[{"name":"x","type":{"dtype":"f32","shape":[1,3,)",
                                     rows, R"(,7]}},{"name":"s","type":{"dtype":"f32","shape":[)", rows, R"(,1]}},
                {"name":"w","type":{"dtype":"f32","shape":[2,3,3,3]}}],
      "nodes":[{"name":"m","op":"mul","inputs":["x","s"]},
               {"name":"y","op":"correlate2d","inputs":["m","w"]}],
      "outputs":[{"name":"y","value":"y"}]})");
    const Result<GraphPtr> graph = read_json(json, builtin_ops());
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    std::mt19937_64 random(1);
    Case made{.name = str_cat(rows, " rows"), .graph = *graph, .arguments = {}, .tolerances = {1e-5}, .sizes = {}};
    for (const std::vector<int64_t> &shape : {std::vector<int64_t>{1, 3, rows, 7}, {rows, 1}, {2, 3, 3, 3}})
      made.arguments.push_back(random_tensor(DType::f32, shape, {}, random));
    for (const Backend &backend : backends()) EXPECT_EQ(check(backend, made), "");
  }
}

}  // namespace
}  // namespace kiln::testing
