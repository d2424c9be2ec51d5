// Inputs of any layout, between guards: dims that go down in memory, that lie on each other, or with gaps.
#include <gtest/gtest.h>

#include "tests/backend/cuda_backend.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::testing {
namespace {

struct Layout {
  const char *shape, *strides;
  std::vector<int64_t> dims;
  std::vector<bool> repeats;  // dims whose elements are all one
};
const Layout layouts[] = {
    {R"([5,"n"])", R"(["-n",1])", {5, 37}, {}},
    {R"([5,"n"])", R"(["n",-1])", {5, 37}, {}},
    {R"([5,"n"])", R"([-1,-5])", {5, 37}, {}},
    {R"([5,"n"])", R"(["-3*n",2])", {5, 37}, {}},
    {R"([5,"n"])", "[0,-1]", {5, 37}, {true, false}},
    {R"([5,"n"])", "[1,0]", {5, 37}, {false, true}},
    {R"([5,"n"])", "[0,0]", {5, 37}, {true, true}},
    {R"([5,"n"])", R"(["3*n-120",1])", {5, 2}, {}},  // below 0 here, and not for a larger n
    {R"([5,"n"])", R"(["3*n-120",1])", {5, 73}, {}},
    {R"([5,"n"])", R"(["-n",-1])", {5, 0}, {}},
    {R"([5,"n"])", R"(["-n",-1])", {5, 1}, {}},
};

class Strides : public OnABackend {};
INSTANTIATE_TEST_SUITE_P(Backends, Strides, ::testing::Values("cpu", "reference", "cuda"),
                         [](const auto &test) { return std::string(test.param); });

TEST_P(Strides, OfInputsMayBeAny) {
  const std::vector<Setting> settings = options_.backend == "cpu" ? all_settings() : device_settings();
  for (const Layout &layout : layouts) {
    SCOPED_TRACE(layout.strides);
    const auto graph_with = [&](const std::string &strides) {
      return test::graph_of(str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"i32","shape":)", layout.shape,
                                    strides, R"(}},{"name":"w","type":{"dtype":"i32","shape":["n",3]}}],
        "nodes":[{"name":"a","op":"add","inputs":["x","x"]},
                 {"name":"s","op":"sum","inputs":["x"],"attrs":{"dims":[1]}},
                 {"name":"m","op":"matmul","inputs":["x","w"]},
                 {"name":"t","op":"permute","inputs":["x"],"attrs":{"dims":[1,0]}},
                 {"name":"r","op":"sort","inputs":["x"],"attrs":{"dim":1}}],
        "outputs":[{"name":"x","value":"x"},{"name":"a","value":"a"},{"name":"s","value":"s"},{"name":"m","value":"m"},
                   {"name":"t","value":"t"},{"name":"r","value":"r:0"}]})"));
    };
    const int64_t n = layout.dims[1];
    std::mt19937_64 random(5);
    Sample numbers;
    TensorData x = random_tensor(DType::i32, layout.dims, numbers, random);
    for (int64_t k = 0; k < x.element_count(); ++k) {
      const auto first = [&](size_t d, int64_t at) { return d < layout.repeats.size() && layout.repeats[d] ? 0 : at; };
      const int64_t from = first(0, k / n) * n + first(1, k % n);
      std::memcpy(x.bytes.data() + 4 * k, x.bytes.data() + 4 * from, 4);
    }
    const GraphCall call{.sizes = {{"n", n}}, .arguments = {x, random_tensor(DType::i32, {n, 3}, numbers, random)}};
    CompileOptions reference;
    reference.backend = "reference";
    const Result<std::vector<Results>> expected = run_guarded(graph_with(""), {&call, 1}, reference, device_settings()),
                                       got = run_guarded(graph_with(str_cat(R"(,"strides":)", layout.strides)),
                                                         {&call, 1}, options_, settings);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(*got, *expected);
  }
}

// What is packed once of a weight that goes down.
TEST_P(Strides, OfParametersMayBeAny) {
  const GraphPtr graph = test::graph_of(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"i32","shape":["m",8]}}],
      "parameters":[{"name":"w","type":{"dtype":"i32","shape":[8,40],"strides":[-40,1]}},
                    {"name":"b","type":{"dtype":"i32","shape":[40],"strides":[-1]}}],
      "nodes":[{"name":"p","op":"matmul","inputs":["x","w"]},{"name":"y","op":"add","inputs":["p","b"]}],
      "outputs":[{"name":"y","value":"y"}]})");
  std::mt19937_64 random(5);
  Sample numbers;
  GraphCall call{.sizes = {{"m", 5}}, .arguments = {}};
  for (const std::vector<int64_t> &shape : {std::vector<int64_t>{5, 8}, {8, 40}, {40}})
    call.arguments.push_back(random_tensor(DType::i32, shape, numbers, random));
  const Result<std::vector<TensorData>> expected = run_on_reference(*graph, call.arguments);
  const Result<std::vector<Results>> got = run_guarded(graph, {&call, 1}, options_, device_settings());
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->front(), *expected);
}

// How operands are packed depends on what memory runs along: rows of panels that there are in part, sizes about the
// steps of k that are packed at a time.
TEST(Products, AreTheSameBitsWhateverMemoryRunsAlong) {
  const auto graph_of = [](DType type, const char *of_x, const char *of_w) {
    const auto input = [&](const char *name, const char *shape, const char *strides) {
      return str_cat(R"({"name":")", name, R"(","type":{"dtype":")", name_of(type), R"(","shape":)", shape, strides,
                     "}}");
    };
    return test::graph_of(str_cat(R"({"kiln":1,"inputs":[)", input("x", R"(["m","k"])", of_x), ",",
                                  input("w", R"(["k","n"])", of_w),
                                  R"(],"nodes":[{"name":"y","op":"matmul","inputs":["x","w"]}],
                                  "outputs":[{"name":"y","value":"y"}]})"));
  };
  constexpr int64_t shapes[][3] = {{1, 40, 70}, {5, 15, 16},   {6, 16, 17},   {7, 17, 15},
                                   {13, 1, 33}, {300, 33, 40}, {97, 1050, 65}};
  std::mt19937_64 random(9);
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
    std::vector<GraphCall> calls;
    for (const auto &[m, k, n] : shapes)
      calls.push_back({{{"m", m}, {"k", k}, {"n", n}},
                       {random_tensor(type, {m, k}, {}, random), random_tensor(type, {k, n}, {}, random)}});
    for (const std::string &level : levels_here()) {
      SCOPED_TRACE(str_cat(name_of(type), " ", level));
      CompileOptions options;
      options.cpu = level;
      std::vector<Results> first;
      for (const char *of_x : {"", R"(,"strides":[1,"m"])"}) {
        for (const char *of_w : {"", R"(,"strides":[1,"k"])"}) {
          Result<std::vector<Results>> got = run_guarded(graph_of(type, of_x, of_w), calls, options, all_settings());
          ASSERT_TRUE(got.ok()) << got.status().message();
          if (first.empty()) first = *got;
          EXPECT_EQ(*got, first) << of_x << of_w;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing
