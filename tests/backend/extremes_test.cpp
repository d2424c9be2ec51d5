// Attributes at the ends of their type are used or refused; none makes a sum of indices overflow.
#include <gtest/gtest.h>

#include "runtime/ops/samples.h"
#include "tests/backend/backends.h"

namespace kiln::testing {
namespace {

using ops::i64_data;
using ops::ints;
using Values = std::vector<int64_t>;

constexpr int64_t least = INT64_MIN, most = INT64_MAX;

struct Taken {
  const char *op;
  AttrMap attrs;
  TensorData x;
  Values y;
};

class Extremes : public ::testing::TestWithParam<Taken> {};

TEST_P(Extremes, OfAnAttributeMeanWhatTheySay) {
  const auto &[op, attrs, x, y] = GetParam();
  const std::vector<Backend> all = backends_and_reference();
  for (const bool known : {true, false}) {
    Shape dims(x.shape.begin(), x.shape.end());
    std::map<std::string, int64_t> sizes;
    for (size_t d = 0; !known && d < dims.size(); ++d) {
      const std::string symbol = str_cat("n", d);
      sizes[symbol] = x.shape[d];
      dims[d] = ops::sym(symbol.c_str());
    }
    const Sample sample{.inputs = {exact_type(DType::i64, dims)}, .attrs = attrs, .sizes = sizes, .given = {{0, x}}};
    const Result<Case> made = make_case(*find_op(op), sample, 1);
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (const Backend &backend : all) {
      const Result<std::vector<TensorData>> results = backend.run(*made);
      ASSERT_TRUE(results.ok()) << backend.name << ": " << results.status().message();
      EXPECT_EQ(to_reference((*results)[0]).i, y) << backend.name << (known ? "" : ", sizes not known");
    }
  }
}

TEST(ExtremeHop, TakesTheFirstWindowAlone) {
  const Result<Case> made = make_case(*find_op("stft"),
                                      {.inputs = {ops::f32({ops::sym("n")})},
                                       .attrs = {{"n_fft", 1}, {"hop", most}, {"center", false}},
                                       .sizes = {{"n", 3}},
                                       .given = {{0, ops::f32_data({3}, {5, 6, 7})}}},
                                      1);
  ASSERT_TRUE(made.ok()) << made.status().message();
  for (const Backend &backend : backends()) {
    const Result<std::vector<TensorData>> results = backend.run(*made);
    ASSERT_TRUE(results.ok()) << backend.name << ": " << results.status().message();
    EXPECT_EQ(to_reference((*results)[0]).f, (std::vector<double>{5, 0})) << backend.name;
  }
}

const TensorData five = i64_data({5}, {1, 2, 3, 4, 5}), square = i64_data({2, 2}, {1, 2, 3, 4});
INSTANTIATE_TEST_SUITE_P(
    Ops, Extremes,
    ::testing::Values(
        Taken{"tril", {{"diagonal", most}}, square, {1, 2, 3, 4}},
        Taken{"tril", {{"diagonal", least}}, square, {0, 0, 0, 0}},
        Taken{"triu", {{"diagonal", most}}, square, {0, 0, 0, 0}},
        Taken{"triu", {{"diagonal", least}}, square, {1, 2, 3, 4}}, Taken{"diagonal", {{"offset", most}}, square, {}},
        Taken{"diagonal", {{"offset", least}}, square, {}},
        Taken{"roll", {{"shifts", ints({-(int64_t{1} << 47)})}, {"dims", ints({0})}}, five, {4, 5, 1, 2, 3}},
        Taken{"slice", {{"dim", 0}, {"end", Dim(5)}, {"step", most}}, five, {1}},
        Taken{"slice", {{"dim", 0}, {"start", Dim(4)}, {"end", Dim(-6)}, {"step", least}}, five, {5}},
        Taken{"unfold", {{"dim", 0}, {"size", 3}, {"step", most}}, five, {1, 2, 3}}));

struct Refused {
  const char *op;
  Shape x;
  AttrMap attrs;
  const char *what;  // of the message
  std::vector<Shape> more = {};
};

class RefusedExtremes : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedExtremes, AreNamed) {
  const auto &[op, x, attrs, what, more] = GetParam();
  std::vector<TensorType> inputs = {exact_type(DType::f32, x)};
  for (const Shape &shape : more) inputs.push_back(exact_type(DType::f32, shape));
  const Result<Case> made = make_case(*find_op(op), {.inputs = inputs, .attrs = attrs}, 1);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find(str_cat("[", op, "]")), std::string::npos) << made.status().message();
  EXPECT_NE(made.status().message().find(what), std::string::npos) << made.status().message();
}

const int64_t far = int64_t{1} << 46;
INSTANTIATE_TEST_SUITE_P(
    Ops, RefusedExtremes,
    ::testing::Values(
        Refused{"max_pool1d", {1, 1, 7}, {{"kernel", ints({5})}, {"dilation", ints({int64_t{1} << 62})}}, "dilation"},
        Refused{"max_pool1d", {1, 1, 7}, {{"kernel", ints({5})}, {"dilation", ints({far})}}, "kernel"},
        Refused{"sum_pool2d", {1, 1, 7, 9}, {{"kernel", ints({1, 9})}, {"dilation", ints({1, most})}}, "dilation"},
        Refused{"pad", {5}, {{"low", ints({-most})}, {"high", ints({most})}}, "low"},
        Refused{"pad", {5}, {{"low", ints({0})}, {"high", ints({most})}}, "high"},
        Refused{"roll", {5}, {{"shifts", ints({most})}, {"dims", ints({0})}}, "shifts"},
        Refused{"roll", {5}, {{"shifts", ints({least})}, {"dims", ints({0})}}, "shifts"},
        Refused{"conv_transpose1d", {1, 1, 4}, {{"dilation", ints({far})}}, "dilation", {{1, 1, 5}}},
        Refused{"attention", {1, 1, 2, 4}, {{"window", ints({most, 0})}}, "window", {{1, 1, 2, 4}, {1, 1, 2, 4}}},
        Refused{"resize_linear",
                {1, 1, 7},
                {{"size", AttrValue(Shape{Dim(3)})}, {"scale", AttrValue(std::vector<double>{1e-16})}},
                "scale"},
        Refused{"local_response_norm", {1, 3, 2}, {{"size", 20000}}, "size is 20000, expected 1 to 1024"},
        Refused{"im2col", {1, 1, 7, 7}, {{"kernel", ints({2, 2})}, {"padding", ints({most, most, 0, 0})}}, "padding"}));

}  // namespace
}  // namespace kiln::testing
