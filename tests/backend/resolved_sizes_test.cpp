// Sizes that a run tells: symbols that nodes resolve.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "runtime/graph/json.h"
#include "runtime/ops/samples.h"
#include "tests/backend/backends.h"
#include "tests/backend/cuda_backend.h"
#include "tests/unit/runtime/exec/example_call.h"

namespace kiln::testing {
namespace {

using example::floats_of;
using example::integers_of;

// The first k elements of x, doubled, where k is how many elements of m are not 0; and their sum.
constexpr std::string_view leading = R"({"kiln":1,
  "inputs":[{"name":"m","type":{"dtype":"i64","shape":["n"]}},{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
  "nodes":[{"name":"zero","op":"full","inputs":[],"attrs":{"value":0,"dtype":"i64","shape":["n"]}},
           {"name":"is","op":"ne","inputs":["m","zero"]},
           {"name":"ones","op":"convert","inputs":["is"],"attrs":{"dtype":"i64"}},
           {"name":"count","op":"sum","inputs":["ones"]},
           {"name":"r","op":"resolve","inputs":["count"],"attrs":{"bound":"n","symbol":"k"}},
           {"name":"first","op":"slice","inputs":["x"],"attrs":{"dim":0,"end":"k"}},
           {"name":"y","op":"add","inputs":["first","first"]},
           {"name":"s","op":"sum","inputs":["y"]},
           {"name":"half","op":"full","inputs":[],"attrs":{"value":0.5,"dtype":"f32","shape":["k + 1"]}}],
  "outputs":[{"name":"y","value":"y"},{"name":"s","value":"s"},{"name":"half","value":"half"},
             {"name":"k","value":"r"}]})";

// x without its first i elements, where i is an input; then a branch on it.
constexpr std::string_view rest = R"({"kiln":1,
  "inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"p","type":{"dtype":"bool","shape":[]}},
            {"name":"x","type":{"dtype":"f32","shape":["n"]}},{"name":"other","type":{"dtype":"f32","shape":["m"]}}],
  "nodes":[{"name":"r","op":"resolve","inputs":["i"],"attrs":{"bound":"n"}},
           {"name":"y","op":"slice","inputs":["x"],"attrs":{"dim":0,"start":"_r","end":"n"}},
           {"name":"c","op":"cond","inputs":["p","y"],"attrs":{"then_graph":"twice","else_graph":"same"}},
           {"name":"z","op":"mul","inputs":["c","other"]}],
  "outputs":[{"name":"z","value":"z"}],
  "graphs":{
    "twice":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
             "nodes":[{"name":"v","op":"add","inputs":["u","u"]}],"outputs":[{"name":"v","value":"v"}]},
    "same":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],"nodes":[],
            "outputs":[{"name":"v","value":"u"}]}}})";

class ResolvedSizes : public OnABackend {
 protected:
  std::unique_ptr<Call> call_of(std::string_view json) {
    Result<GraphPtr> graph = read_json(json, builtin_ops());
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    if (!graph.ok()) return nullptr;
    Result<Compiled> compiled = compile_alone(*graph, options_);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    if (!compiled.ok()) return nullptr;
    Result<std::unique_ptr<Call>> call = Call::create(compiled->executable);
    EXPECT_TRUE(call.ok()) << call.status().message();
    return call.ok() ? std::move(*call) : nullptr;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, ResolvedSizes, ::testing::Values("cpu", "reference", "cuda"),
                         [](const auto &test) { return std::string(test.param); });

template <class T>
ArrayRef array(std::vector<T> &data, DType dtype, const int64_t &size) {
  return {data.data(), dtype, 1, &size, nullptr};
}

TEST_P(ResolvedSizes, OutputsHaveTheShapesThatTheRunTells) {
  const std::unique_ptr<Call> call = call_of(leading);
  ASSERT_TRUE(call);
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7};
  const int64_t n = 7;
  for (const auto &mask : {std::vector<int64_t>{1, 0, 0, 5, 0, 1, 0}, {0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1}}) {
    std::vector<int64_t> m = mask;
    const int64_t k = 7 - std::ranges::count(m, 0);
    const Status status = call->run(std::vector{array(m, DType::i64, n), array(x, DType::f32, n)});
    ASSERT_TRUE(status.ok()) << status.message();
    const Result<std::span<const int64_t>> dims = call->dims(2);
    ASSERT_TRUE(dims.ok()) << dims.status().message();
    EXPECT_EQ((*dims)[0], k);
    const Result<Call::Taken> y = call->take(2), s = call->take(3), half = call->take(4);
    ASSERT_TRUE(y.ok() && s.ok() && half.ok());
    std::vector<float> expected;
    float sum = 0;
    for (int64_t i = 0; i < k; ++i) expected.push_back(2 * x[static_cast<size_t>(i)]), sum += expected.back();
    EXPECT_EQ(floats_of(*y), expected);
    EXPECT_EQ(floats_of(*s), std::vector{sum});
    EXPECT_EQ(floats_of(*half), std::vector<float>(static_cast<size_t>(k) + 1, 0.5F));
  }
}

TEST_P(ResolvedSizes, FlowIntoNestedGraphsAndChecks) {
  const std::unique_ptr<Call> call = call_of(rest);
  ASSERT_TRUE(call);
  std::vector<float> x = {1, 2, 3, 4, 5}, other = {10, 100};
  const int64_t n = 5, m = 2;
  std::vector<int64_t> i = {3};
  uint8_t p = 1;
  const auto run = [&] {
    return call->run(std::vector{ArrayRef{i.data(), DType::i64, 0, nullptr, nullptr},
                                 ArrayRef{&p, DType::boolean, 0, nullptr, nullptr}, array(x, DType::f32, n),
                                 array(other, DType::f32, m)});
  };
  ASSERT_TRUE(run().ok()) << run().message();
  EXPECT_EQ(floats_of(*call->take(4)), (std::vector<float>{80, 1000}));
  p = 0;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(floats_of(*call->take(4)), (std::vector<float>{40, 500}));
  i = {2};  // three elements by two
  EXPECT_EQ(run().code(), Code::type_mismatch);
  i = {3};
  ASSERT_TRUE(run().ok()) << "a run that failed leaves nothing behind";
  EXPECT_EQ(floats_of(*call->take(4)), (std::vector<float>{40, 500}));
}

// Memory is laid out for the largest size first, which is odd here: the branch's check is of the size that there is.
TEST_P(ResolvedSizes, ChecksOfNestedGraphsAreOfTheSizesThatTheRunTells) {
  const auto call = call_of(R"({"kiln":1,
    "inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"p","type":{"dtype":"bool","shape":[]}},
              {"name":"x","type":{"dtype":"f32","shape":["n"]}}],
    "nodes":[{"name":"r","op":"resolve","inputs":["i"],"attrs":{"bound":"n"}},
             {"name":"first","op":"slice","inputs":["x"],"attrs":{"dim":0,"end":"_r"}},
             {"name":"c","op":"cond","inputs":["p","first"],"attrs":{"then_graph":"f","else_graph":"f"}}],
    "outputs":[{"name":"z","value":"c"}],
    "graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
                   "nodes":[{"name":"g","op":"glu","inputs":["u"],"attrs":{"dim":0}},
                            {"name":"v","op":"sum","inputs":["g"]}],"outputs":[{"name":"v","value":"v"}]}}})");
  ASSERT_TRUE(call);
  const int64_t five = 5;
  bool p = true;
  std::vector<float> x = {3, 5, 0, 0, 7};
  float z = 0;
  for (int64_t i : {4, 2, 3}) {
    const Status status = call->run(
        std::array{ArrayRef{&i, DType::i64, 0, nullptr, nullptr}, ArrayRef{&p, DType::boolean, 0, nullptr, nullptr},
                   array(x, DType::f32, five), ArrayRef{&z, DType::f32, 0, nullptr, nullptr}});
    if (i == 3) {
      EXPECT_FALSE(status.ok());
      continue;
    }
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_NEAR(z, i == 4 ? 3 * 0.5 + 5 * 0.5 : 3 / (1 + std::exp(-5.0)), 1e-5);
  }
}

TEST_P(ResolvedSizes, ASizeBeyondItsBoundEndsTheRun) {
  const std::unique_ptr<Call> call = call_of(rest);
  ASSERT_TRUE(call);
  std::vector<float> x = {1, 2, 3, 4, 5}, other = {10, 100};
  const int64_t n = 5, m = 2;
  uint8_t p = 1;
  for (int64_t i : {int64_t{6}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const Status status = call->run(std::vector{ArrayRef{&i, DType::i64, 0, nullptr, nullptr},
                                                ArrayRef{&p, DType::boolean, 0, nullptr, nullptr},
                                                array(x, DType::f32, n), array(other, DType::f32, m)});
    EXPECT_EQ(status.code(), Code::type_mismatch);
    EXPECT_NE(status.message().find(str_cat("the size is ", i, ", expected 0 to 5 (symbol '_r')")), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("'r'"), std::string::npos) << status.message();
  }
}

TEST_P(ResolvedSizes, MemoryOfSuchAnOutputIsKilns) {
  const std::unique_ptr<Call> call = call_of(leading);
  ASSERT_TRUE(call);
  std::vector<float> x = {1, 2}, y = {0, 0};
  std::vector<int64_t> m = {1, 0};
  const int64_t n = 2;
  EXPECT_EQ(call->run(std::vector{array(m, DType::i64, n), array(x, DType::f32, n), array(y, DType::f32, n)}).message(),
            "output 'y': its size is known when the run has ended; leave its memory to Kiln");
}

// The rows from k to n - 1, twice. Until a run tells k it is taken for n, and then there would be -1 of them.
TEST_P(ResolvedSizes, ACallOfOtherSizesKnowsNothingOfWhatTheLastOneResolved) {
  const std::unique_ptr<Call> call = call_of(R"({"kiln":1,
    "inputs":[{"name":"x","type":{"dtype":"i64","shape":["n"]}}],
    "nodes":[{"name":"at","op":"nonzero","inputs":["x"],"attrs":{"symbol":"k"}},
             {"name":"s","op":"slice","inputs":["x"],"attrs":{"dim":0,"start":"k","end":"n - 1"}}],
    "outputs":[{"name":"y","value":"s"},{"name":"z","value":"s"}]})");
  ASSERT_TRUE(call);
  for (const int64_t n : {int64_t{3}, int64_t{6}, int64_t{2}}) {
    std::vector<int64_t> x(static_cast<size_t>(n));
    x.back() = 7;
    const Status status = call->run(std::vector{array(x, DType::i64, n)});
    ASSERT_TRUE(status.ok()) << status.message();
    for (const uint32_t output : {1U, 2U})
      EXPECT_EQ(integers_of(*call->take(output)), std::vector<int64_t>(static_cast<size_t>(n) - 2)) << n;
  }
}

// A graph whose calls resolve: each copy has a symbol of its own.
TEST_P(ResolvedSizes, EachCallOfAGraphResolvesASymbolOfItsOwn) {
  const std::unique_ptr<Call> call = call_of(R"({"kiln":1,
    "inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"j","type":{"dtype":"i64","shape":[]}},
              {"name":"x","type":{"dtype":"f32","shape":["n"]}}],
    "nodes":[{"name":"a","op":"call","inputs":["i","x"],"attrs":{"graph":"head"}},
             {"name":"b","op":"call","inputs":["j","x"],"attrs":{"graph":"head"}},
             {"name":"y","op":"sub","inputs":["a","b"]}],
    "outputs":[{"name":"y","value":"y"}],
    "graphs":{"head":{"inputs":[{"name":"c","type":{"dtype":"i64","shape":[]}},
                                {"name":"u","type":{"dtype":"f32","shape":["m"]}}],
      "nodes":[{"name":"r","op":"resolve","inputs":["c"],"attrs":{"bound":"m"}},
               {"name":"h","op":"slice","inputs":["u"],"attrs":{"dim":0,"end":"_r"}},
               {"name":"s","op":"sum","inputs":["h"]}],
      "outputs":[{"name":"s","value":"s"}]}}})");
  ASSERT_TRUE(call);
  std::vector<float> x = {1, 2, 4, 8};
  const int64_t n = 4, i = 3, j = 1;
  const auto scalar = [](const int64_t &v) {
    return ArrayRef{const_cast<int64_t *>(&v), DType::i64, 0, nullptr, nullptr};
  };
  const Status status = call->run(std::vector{scalar(i), scalar(j), array(x, DType::f32, n)});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(floats_of(*call->take(3)), std::vector<float>{6});
}

// The columns in which x is not 0 pick rows of a table, and where these indices are not 0 is asked again; what a called
// graph finds stays in it.
constexpr std::string_view found = R"({"kiln":1,
  "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n","m"]}},
            {"name":"table","type":{"dtype":"f32","shape":["m",2]}}],
  "nodes":[{"name":"at","op":"nonzero","inputs":["x"],"attrs":{"symbol":"k"}},
           {"name":"columns","op":"slice","inputs":["at:0"],"attrs":{"dim":1,"start":1,"end":2}},
           {"name":"flat","op":"reshape","inputs":["columns"],"attrs":{"shape":["k"]}},
           {"name":"rows","op":"embedding","inputs":["table","flat"]},
           {"name":"again","op":"nonzero","inputs":["at:0"],"attrs":{"max":"k + 3"}},
           {"name":"all","op":"sum","inputs":["again:0"],"attrs":{"dims":[0]}},
           {"name":"inside","op":"call","inputs":["x"],"attrs":{"graph":"sums"}},
           {"name":"inside_too","op":"call","inputs":["table"],"attrs":{"graph":"sums"}}],
  "outputs":[{"name":"at","value":"at:0"},{"name":"k","value":"at:1"},{"name":"rows","value":"rows"},
             {"name":"all","value":"all"},{"name":"inside","value":"inside"},{"name":"inside_too","value":"inside_too"}],
  "graphs":{"sums":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["a","b"]}}],
    "nodes":[{"name":"f","op":"nonzero","inputs":["u"]},{"name":"s","op":"sum","inputs":["f:0"],"attrs":{"dims":[0]}}],
    "outputs":[{"name":"s","value":"s"}]}}})";

TEST_P(ResolvedSizes, WhatIsNotZeroTellsSizesOfWhatFollows) {
  const std::unique_ptr<Call> call = call_of(found);
  ASSERT_TRUE(call);
  const auto run = [&](std::vector<float> x, int64_t n, std::vector<float> table) {
    const std::array<int64_t, 2> dims = {n, 3}, table_dims = {3, 2};
    return call->run(std::vector{ArrayRef{x.data(), DType::f32, 2, dims.data(), nullptr},
                                 ArrayRef{table.data(), DType::f32, 2, table_dims.data(), nullptr}});
  };
  Status status = run({0, 5, -0.F, 0, NAN, 1}, 2, {1, 10, 2, 20, 3, 0});  // [0, 1], [1, 1], [1, 2]
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(integers_of(*call->take(2)), (std::vector<int64_t>{0, 1, 1, 1, 1, 2}));
  EXPECT_EQ(integers_of(*call->take(3)), std::vector<int64_t>{3});
  EXPECT_EQ(floats_of(*call->take(4)), (std::vector<float>{2, 20, 2, 20, 3, 0}));
  EXPECT_EQ(integers_of(*call->take(5)), (std::vector<int64_t>{0 + 1 + 1 + 2 + 2, 1 + 0 + 1 + 0 + 1}));
  EXPECT_EQ(integers_of(*call->take(6)), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(integers_of(*call->take(7)), (std::vector<int64_t>{0 + 0 + 1 + 1 + 2, 0 + 1 + 0 + 1 + 0}));
  for (const int64_t n : {1, 0}) {  // nothing is found, or there is nothing
    status = run(std::vector<float>(static_cast<size_t>(n) * 3), n, {0, 0, 0, 0, 0, 0});
    ASSERT_TRUE(status.ok()) << status.message();
    const Result<std::span<const int64_t>> dims = call->dims(2);
    ASSERT_TRUE(dims.ok()) << dims.status().message();
    EXPECT_EQ(std::vector(dims->begin(), dims->end()), (std::vector<int64_t>{0, 2}));
    EXPECT_EQ(integers_of(*call->take(5)), (std::vector<int64_t>{0, 0}));
  }
}

TEST_P(ResolvedSizes, WhatIsNotZeroInABranchOrALoopStaysThere) {
  const std::unique_ptr<Call> call = call_of(R"({"kiln":1,
    "inputs":[{"name":"p","type":{"dtype":"bool","shape":[]}},{"name":"x","type":{"dtype":"i64","shape":["n"]}}],
    "nodes":[{"name":"c","op":"cond","inputs":["p","x"],"attrs":{"then_graph":"indices","else_graph":"plain"}},
             {"name":"w","op":"while","inputs":["x"],"attrs":{"cond_graph":"any","body_graph":"less"}}],
    "outputs":[{"name":"c","value":"c"},{"name":"w","value":"w"}],
    "graphs":{
      "indices":{"inputs":[{"name":"u","type":{"dtype":"i64","shape":["a"]}}],
        "nodes":[{"name":"f","op":"nonzero","inputs":["u"]},{"name":"s","op":"sum","inputs":["f:0"]}],
        "outputs":[{"name":"s","value":"s"}]},
      "plain":{"inputs":[{"name":"u","type":{"dtype":"i64","shape":["a"]}}],
        "nodes":[{"name":"s","op":"sum","inputs":["u"]}],"outputs":[{"name":"s","value":"s"}]},
      "any":{"inputs":[{"name":"u","type":{"dtype":"i64","shape":["a"]}}],
        "nodes":[{"name":"f","op":"nonzero","inputs":["u"]},
                 {"name":"one","op":"full","attrs":{"value":1,"dtype":"i64","shape":[]}},
                 {"name":"m","op":"gt","inputs":["f:1","one"]}],"outputs":[{"name":"m","value":"m"}]},
      "less":{"inputs":[{"name":"u","type":{"dtype":"i64","shape":["a"]}}],
        "nodes":[{"name":"one","op":"full","attrs":{"value":1,"dtype":"i64","shape":[]}},
                 {"name":"none","op":"full","attrs":{"value":0,"dtype":"i64","shape":[]}},
                 {"name":"d","op":"sub","inputs":["u","one"]},{"name":"y","op":"maximum","inputs":["d","none"]}],
        "outputs":[{"name":"y","value":"y"}]}}})");
  ASSERT_TRUE(call);
  std::vector<int64_t> x = {0, 4, 0, 1, 3, 0};
  const int64_t n = 6;
  for (uint8_t p : {1, 0}) {
    const Status status =
        call->run(std::vector{ArrayRef{&p, DType::boolean, 0, nullptr, nullptr}, array(x, DType::i64, n)});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(integers_of(*call->take(2)), std::vector<int64_t>{8}) << "of indices 1, 3, 4, or of elements";
    EXPECT_EQ(integers_of(*call->take(3)), (std::vector<int64_t>{0, 1, 0, 0, 0, 0}));
  }
}

// Symbols of the nested graph come from its inputs, of which the first has no dims, and from a node in it.
TEST_P(ResolvedSizes, ANestedGraphWhoseFirstInputIsAScalarResolvesItsOwn) {
  const std::unique_ptr<Call> call = call_of(R"({"kiln":1,
    "inputs":[{"name":"p","type":{"dtype":"bool","shape":[]}},{"name":"i","type":{"dtype":"i64","shape":[]}},
              {"name":"x","type":{"dtype":"i64","shape":["n"]}}],
    "nodes":[{"name":"c","op":"cond","inputs":["p","i","x"],"attrs":{"then_graph":"some","else_graph":"some"}}],
    "outputs":[{"name":"c","value":"c"}],
    "graphs":{
      "some":{"inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"i64","shape":["m"]}}],
        "nodes":[{"name":"z","op":"nonzero","inputs":["x"],"attrs":{"max":3}},
                 {"name":"t","op":"mul","inputs":["z:0","i"]},
                 {"name":"s","op":"sum","inputs":["t"]}],"outputs":[{"name":"s","value":"s"}]}}})");
  ASSERT_TRUE(call);
  uint8_t p = 1;
  int64_t i = 10;
  const int64_t n = 4;
  std::vector<int64_t> x = {7, 0, 7, 7};
  const Status status = call->run(std::vector{ArrayRef{&p, DType::boolean, 0, nullptr, nullptr},
                                              ArrayRef{&i, DType::i64, 0, nullptr, nullptr}, array(x, DType::i64, n)});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(integers_of(*call->take(3)), std::vector<int64_t>{50}) << "ten times the indices 0, 2, 3";
}

TEST_P(ResolvedSizes, MoreThanTheMaximumThatIsNotZeroEndsTheRun) {
  const std::unique_ptr<Call> call = call_of(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"i64","shape":["n"]}}],
    "nodes":[{"name":"inner","op":"call","inputs":["x"],"attrs":{"graph":"two"}}],
    "outputs":[{"name":"y","value":"inner"}],
    "graphs":{"two":{"inputs":[{"name":"u","type":{"dtype":"i64","shape":["a"]}}],
      "nodes":[{"name":"at","op":"nonzero","inputs":["u"],"attrs":{"max":2}},
               {"name":"s","op":"sum","inputs":["at:0"]}],"outputs":[{"name":"s","value":"s"}]}}})");
  ASSERT_TRUE(call);
  std::vector<int64_t> x = {7, 0, 7, 7};
  const int64_t n = 4;
  const Status status = call->run(std::vector{array(x, DType::i64, n)});
  EXPECT_EQ(status.code(), Code::type_mismatch);
  EXPECT_NE(status.message().find("the size is 3, expected 0 to 2"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("node 'inner"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("at'"), std::string::npos) << status.message();
  x = {7, 0, 0, 7};
  ASSERT_TRUE(call->run(std::vector{array(x, DType::i64, n)}).ok());
  EXPECT_EQ(integers_of(*call->take(1)), std::vector<int64_t>{3});
}

// The first c elements of x, whose size is known late, and all of them, whose size is known at once.
constexpr std::string_view head_and_all = R"({"kiln":1,
  "inputs":[{"name":"c","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"i64","shape":["n"]}}],
  "nodes":[{"name":"r","op":"resolve","inputs":["c"],"attrs":{"bound":"n","symbol":"k"}},
           {"name":"s","op":"slice","inputs":["x"],"attrs":{"dim":0,"end":"k"}},
           {"name":"h","op":"neg","inputs":["s"]},{"name":"a","op":"neg","inputs":["x"]}],
  "outputs":[{"name":"a","value":"a"},{"name":"h","value":"h"}]})";

Status run_head_and_all(Call &call, int64_t c, std::vector<int64_t> x, const ArrayRef &all = {}) {
  const auto n = static_cast<int64_t>(x.size());
  return call.run(std::vector{ArrayRef{&c, DType::i64, 0, nullptr, nullptr}, array(x, DType::i64, n), all});
}

// Outputs of the run before were larger, or smaller, than memory is now.
TEST_P(ResolvedSizes, AFailedRunLeavesNoOutputs) {
  const std::unique_ptr<Call> call = call_of(head_and_all);
  ASSERT_TRUE(call);
  ASSERT_TRUE(run_head_and_all(*call, 1000, std::vector<int64_t>(1000, 1)).ok());
  ASSERT_TRUE(call->take(3).ok());
  Status status = run_head_and_all(*call, 7, {1, 2, 3});  // beyond the bound
  ASSERT_EQ(status.code(), Code::type_mismatch) << status.message();
  EXPECT_EQ(call->dims(3).status().message(), "dims of output 'h': the last run failed before its size was known");
  for (const uint32_t output : {2U, 3U}) EXPECT_FALSE(call->take(output).ok());

  ASSERT_TRUE(run_head_and_all(*call, 2, {1, 2, 3}).ok());
  std::vector<int64_t> wrong(5);
  const int64_t size = 5;
  status = run_head_and_all(*call, 900, std::vector<int64_t>(1000, 1), array(wrong, DType::i64, size));
  ASSERT_EQ(status.code(), Code::type_mismatch) << status.message();
  EXPECT_FALSE(call->take(3).ok()) << "its memory is still the one of three elements";

  ASSERT_TRUE(run_head_and_all(*call, 2, {1, 2, 3}).ok());
  EXPECT_EQ(integers_of(*call->take(2)), (std::vector<int64_t>{-1, -2, -3}));
  EXPECT_EQ(integers_of(*call->take(3)), (std::vector<int64_t>{-1, -2}));
}

TEST_P(ResolvedSizes, WhatALargerRunLeftOverlapsNothing) {
  const std::unique_ptr<Call> call = call_of(head_and_all);
  ASSERT_TRUE(call);
  for (int turn = 0; turn < 40; ++turn) {
    const int64_t n = turn % 2 ? 3 : 100'000;
    const Status status = run_head_and_all(*call, n, std::vector<int64_t>(static_cast<size_t>(n), turn));
    ASSERT_TRUE(status.ok()) << turn << ": " << status.message();
    EXPECT_EQ(integers_of(*call->take(3)), std::vector<int64_t>(static_cast<size_t>(n), -turn));
  }
}

}  // namespace
}  // namespace kiln::testing
