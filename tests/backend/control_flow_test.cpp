// cond, while and scans, alone and in each other, on every backend: values, errors of kernels in them, and records.
#include <gtest/gtest.h>

#include "runtime/graph/json.h"
#include "runtime/ops/samples.h"
#include "tests/backend/backends.h"
#include "tests/backend/cuda_backend.h"
#include "tests/temporary_folder.h"

namespace kiln::testing {
namespace {

using ops::f32_data;
using ops::i64_data;

// Halves x, i times; on its way, if i is even, adds w. What surrounds the loop is code of its own, w is a parameter,
// and the symbol of the nested graphs has another name.
constexpr std::string_view cond_in_while = R"({"kiln":1,
  "inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
  "parameters":[{"name":"w","type":{"dtype":"f32","shape":["n"]}}],
  "nodes":[{"name":"e","op":"tanh","inputs":["x"]},
           {"name":"loop","op":"while","inputs":["i","e","w"],
            "attrs":{"cond_graph":"more","body_graph":"turn","carried":2}},
           {"name":"y","op":"mul","inputs":["loop:1","x"]}],
  "outputs":[{"name":"y","value":"y"},{"name":"left","value":"loop:0"},{"name":"raw","value":"loop:1"}],
  "graphs":{
    "more":{"inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":["m"]}},
                      {"name":"w","type":{"dtype":"f32","shape":["m"]}}],
            "nodes":[{"name":"zero","op":"full","inputs":[],"attrs":{"value":0,"dtype":"i64","shape":[]}},
                     {"name":"more","op":"gt","inputs":["i","zero"]}],
            "outputs":[{"name":"more","value":"more"}]},
    "turn":{"inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":["m"]}},
                      {"name":"w","type":{"dtype":"f32","shape":["m"]}}],
            "nodes":[{"name":"one","op":"full","inputs":[],"attrs":{"value":1,"dtype":"i64","shape":[]}},
                     {"name":"next","op":"sub","inputs":["i","one"]},
                     {"name":"two","op":"full","inputs":[],"attrs":{"value":2,"dtype":"i64","shape":[]}},
                     {"name":"odd","op":"remainder","inputs":["i","two"]},
                     {"name":"is_even","op":"lt","inputs":["odd","one"]},
                     {"name":"half","op":"full","inputs":[],"attrs":{"value":0.5,"dtype":"f32","shape":[]}},
                     {"name":"halved","op":"mul","inputs":["x","half"]},
                     {"name":"c","op":"cond","inputs":["is_even","halved","w"],
                      "attrs":{"then_graph":"plus","else_graph":"first"}}],
            "outputs":[{"name":"i","value":"next"},{"name":"x","value":"c"}]},
    "plus":{"inputs":[{"name":"a","type":{"dtype":"f32","shape":["k"]}},{"name":"b","type":{"dtype":"f32","shape":["k"]}}],
            "nodes":[{"name":"s","op":"add","inputs":["a","b"]}],"outputs":[{"name":"s","value":"s"}]},
    "first":{"inputs":[{"name":"a","type":{"dtype":"f32","shape":["k"]}},{"name":"b","type":{"dtype":"f32","shape":["k"]}}],
             "nodes":[],"outputs":[{"name":"a","value":"a"}]}}})";

// In the branch that is taken for i > 0, i divides; and views, constants and arguments are outputs of branches.
constexpr std::string_view divides_in_a_branch = R"({"kiln":1,
  "inputs":[{"name":"p","type":{"dtype":"bool","shape":[]}},{"name":"i","type":{"dtype":"i64","shape":[2,3]}}],
  "nodes":[{"name":"c","op":"cond","inputs":["p","i"],"attrs":{"then_graph":"divide","else_graph":"turn"}},
           {"name":"y","op":"neg","inputs":["c:0"]}],
  "outputs":[{"name":"y","value":"y"},{"name":"z","value":"c:1"}],
  "graphs":{
    "divide":{"inputs":[{"name":"i","type":{"dtype":"i64","shape":[2,3]}}],
              "nodes":[{"name":"d","op":"div","inputs":["i","i"]},
                       {"name":"q","op":"permute","inputs":["d"],"attrs":{"dims":[1,0]}}],
              "outputs":[{"name":"q","value":"q"},{"name":"i","value":"i"}]},
    "turn":{"inputs":[{"name":"i","type":{"dtype":"i64","shape":[2,3]}}],
            "constants":[{"name":"k","type":{"dtype":"i64","shape":[2,3]},"data":[1,2,3,4,5,6]}],
            "nodes":[{"name":"t","op":"permute","inputs":["i"],"attrs":{"dims":[1,0]}}],
            "outputs":[{"name":"t","value":"t"},{"name":"k","value":"k"}]}}})";

GraphPtr graph_of(std::string_view json) {
  Result<GraphPtr> graph = read_json(json, builtin_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : nullptr;
}

TensorData flag(bool value) { return {DType::boolean, {}, {static_cast<uint8_t>(value)}}; }

std::vector<TensorData> loop_arguments(int64_t turns, int64_t n) {
  std::vector<float> x, w;
  for (int64_t i = 0; i < n; ++i) {
    x.push_back(static_cast<float>(i) / 8 - 1);
    w.push_back(static_cast<float>(i % 5) / 4);
  }
  return {i64_data({}, {turns}), f32_data({n}, x), f32_data({n}, w)};
}

void expect_as_reference(const Backend &backend, const GraphPtr &graph, std::vector<TensorData> arguments,
                         SymbolSizes sizes = {}) {
  Case made;
  made.graph = graph;
  made.sizes = std::move(sizes);
  made.arguments = std::move(arguments);
  made.tolerances.assign(graph->outputs().size(), 1e-5);
  EXPECT_EQ(check(backend, made), "") << backend.name;
}

std::vector<Backend> all_backends() {
  std::vector<Backend> all = compiled_backends();
  if (standin::has_compiler()) all.push_back(cuda_on_standins());
  return all;
}

TEST(ControlFlow, ACondInAWhileIsWhatTheReferenceMakesOfIt) {
  const GraphPtr graph = graph_of(cond_in_while);
  for (const Backend &backend : all_backends())
    for (const int64_t turns : {0, 1, 4, 7})
      expect_as_reference(backend, graph, loop_arguments(turns, 37), {{"n", 37}});
}

TEST(ControlFlow, SizesMayBeZero) {
  const GraphPtr graph = graph_of(cond_in_while);
  for (const Backend &backend : all_backends()) expect_as_reference(backend, graph, loop_arguments(3, 0), {{"n", 0}});
}

TEST(ControlFlow, BranchesMayYieldViewsConstantsAndArguments) {
  const GraphPtr graph = graph_of(divides_in_a_branch);
  for (const Backend &backend : all_backends())
    for (const bool taken : {true, false})
      expect_as_reference(backend, graph, {flag(taken), i64_data({2, 3}, {1, -2, 3, 4, 5, 6})});
}

// What an outermost plan would prepare when it is bound: packed weights, and parts that are put together.
TEST(ControlFlow, BranchesMayComputeFromConstantsAlone) {
  std::string numbers = "0.5";
  for (int k = 1; k < 32 * 32; ++k) str_append(numbers, str_cat(",", k % 7 - 3));
  const GraphPtr graph = graph_of(str_cat(R"({"kiln":1,
    "inputs":[{"name":"p","type":{"dtype":"bool","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":["n",32]}}],
    "nodes":[{"name":"c","op":"cond","inputs":["p","x"],"attrs":{"then_graph":"both","else_graph":"both"}}],
    "outputs":[{"name":"y","value":"c:0"},{"name":"z","value":"c:1"}],
    "graphs":{"both":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["m",32]}}],
      "constants":[{"name":"k","type":{"dtype":"f32","shape":[32,32]},"data":[)",
                                          numbers, R"(]}],
      "nodes":[{"name":"v","op":"matmul","inputs":["u","k"]},
               {"name":"kk","op":"concat","inputs":["k","k"],"attrs":{"dim":0}}],
      "outputs":[{"name":"v","value":"v"},{"name":"kk","value":"kk"}]}}})"));
  ASSERT_TRUE(graph);
  std::mt19937_64 random(1);
  const TensorData x = random_tensor(DType::f32, {37, 32}, Sample(), random);
  for (const Backend &backend : all_backends()) expect_as_reference(backend, graph, {flag(true), x}, {{"n", 37}});
}

// Whose turns are one kernel, which reads what it is given as row-major.
TEST(ControlFlow, AScanMayBeGivenArraysWithStrides) {
  const GraphPtr graph = graph_of(R"({"kiln":1,
    "inputs":[{"name":"h","type":{"dtype":"f32","shape":["n",5],"strides":[1,"n"]}},
              {"name":"s","type":{"dtype":"f32","shape":[3,"n",5],"strides":[1,15,3]}}],
    "nodes":[{"name":"y","op":"scan","inputs":["h","s"],"attrs":{"body_graph":"turn"}}],
    "outputs":[{"name":"last","value":"y:0"},{"name":"all","value":"y:1"}],
    "graphs":{"turn":{"inputs":[{"name":"h","type":{"dtype":"f32","shape":["k",5]}},
                                {"name":"x","type":{"dtype":"f32","shape":["k",5]}}],
                      "nodes":[{"name":"t","op":"tanh","inputs":["h"]},{"name":"r","op":"add","inputs":["t","x"]}],
                      "outputs":[{"name":"h","value":"r"},{"name":"all","value":"t"}]}}})");
  ASSERT_TRUE(graph);
  std::mt19937_64 random(1);
  const TensorData h = random_tensor(DType::f32, {4, 5}, Sample(), random),
                   s = random_tensor(DType::f32, {3, 4, 5}, Sample(), random);
  for (const Backend &backend : all_backends()) expect_as_reference(backend, graph, {h, s}, {{"n", 4}});
}

GraphPtr running_sums(std::string_view dtype, std::string_view length) {
  const std::string element = str_cat(R"("type":{"dtype":")", dtype, R"(","shape":[2]}})");
  return graph_of(str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":")", dtype, R"(","shape":[)", length,
                          R"(,2]}}],
    "nodes":[{"name":"y","op":"associative_scan","inputs":["x"],"attrs":{"combine_graph":"sum"}},
             {"name":"z","op":"associative_scan","inputs":["x"],"attrs":{"combine_graph":"sum","reverse":true}}],
    "outputs":[{"name":"y","value":"y"},{"name":"z","value":"z"}],
    "graphs":{"sum":{"inputs":[{"name":"a",)",
                          element, R"(,{"name":"b",)", element,
                          R"(],"nodes":[{"name":"s","op":"add","inputs":["a","b"]}],
                     "outputs":[{"name":"s","value":"s"}]}}})"));
}

TEST(ControlFlow, AnAssociativeScanOfAnyNumberOfBlocksHoldsEachElement) {
  const GraphPtr graph = running_sums("i64", "\"n\"");
  ASSERT_TRUE(graph);
  for (const size_t length : {0, 16400, 16401, 33000}) {
    const auto n = static_cast<int64_t>(length);
    std::vector<int64_t> x(2 * length), y(2 * length), z(2 * length);
    for (size_t k = 0; k < 2 * length; ++k) x[k] = static_cast<int64_t>(k * k % 1001) - 300;
    for (size_t k = 0; k < 2 * length; ++k) y[k] = x[k] + (k < 2 ? 0 : y[k - 2]);
    for (size_t k = 2 * length; k-- > 0;) z[k] = x[k] + (k + 2 < 2 * length ? z[k + 2] : 0);
    for (const Backend &backend : all_backends()) {
      const Result<std::vector<TensorData>> got = backend.run({{}, graph, {i64_data({n, 2}, x)}, {}, {{"n", n}}});
      ASSERT_TRUE(got.ok()) << backend.name << ": " << got.status().message();
      EXPECT_EQ(difference((*got)[0], i64_data({n, 2}, y), 0), "") << backend.name << ", " << n;
      EXPECT_EQ(difference((*got)[1], i64_data({n, 2}, z), 0), "") << backend.name << ", " << n;
    }
  }
}

TEST(ControlFlow, AnAssociativeScansOrderIsTheSameWhetherItsLengthIsKnown) {
  std::mt19937_64 random(1);
  for (const int64_t length : {100, 16500}) {
    const std::vector<TensorData> x = {random_tensor(DType::f32, {length, 2}, Sample(), random)};
    const Result<std::vector<TensorData>> known =
        run_compiled({{}, running_sums("f32", str_cat(length)), x, {}, {}}, {});
    const Result<std::vector<TensorData>> symbolic =
        run_compiled({{}, running_sums("f32", "\"n\""), x, {}, {{"n", length}}}, {});
    ASSERT_TRUE(known.ok() && symbolic.ok());
    EXPECT_EQ(*known, *symbolic) << length;
  }
}

// 2^24 holds no 1 that is added to it, but the sum of a later block.
TEST(ControlFlow, AnAssociativeScanAddsUpItsBlocksByThemselves) {
  std::vector<float> x(2 * 16410, 1), y;
  x[0] = x[1] = 0x1p24F;
  for (int64_t k = 0; k < 16410; ++k)
    y.insert(y.end(), 2, k < 16400 ? 0x1p24F : 0x1p24F + static_cast<float>(k - 16399));
  for (const Backend &backend : all_backends()) {
    const Result<std::vector<TensorData>> got =
        backend.run({{}, running_sums("f32", "16410"), {f32_data({16410, 2}, x)}, {}, {}});
    ASSERT_TRUE(got.ok()) << backend.name << ": " << got.status().message();
    const RefTensor sums = to_reference((*got)[0]);
    for (size_t k : {0, 16399, 16401, 16403, 16409}) EXPECT_EQ(sums.f[2 * k], y[2 * k]) << backend.name << ", " << k;
  }
}

TEST(ControlFlow, AnErrorOfAKernelInABranchNamesItsNodeWhereTheBranchIsTaken) {
  const GraphPtr graph = graph_of(divides_in_a_branch);
  for (const Backend &backend : all_backends()) {
    Case made;
    made.graph = graph;
    made.arguments = {flag(true), i64_data({2, 3}, {1, 2, 0, 4, 5, 6})};
    const Status status = backend.run(made).status();
    EXPECT_EQ(status.code(), Code::out_of_range) << backend.name << ": " << status.message();
    EXPECT_NE(status.message().find("an integer is divided by zero in node 'c.then_graph.d' [div]"), std::string::npos)
        << backend.name << ": " << status.message();
    made.arguments[0] = flag(false);
    EXPECT_TRUE(backend.run(made).ok()) << backend.name;
  }
}

TEST(ControlFlow, ARecordServesTheNextProcessWithoutAPassOrACompiler) {
  const test::TemporaryFolder folder;
  static const PassList passes = PassList::built_in();
  for (const int turn : {0, 1}) {
    Cache cache(folder.path(), 0);
    const CompileEnvironment environment{
        .ops = builtin_ops(), .passes = passes, .cache = &cache, .pool = std::make_shared<ThreadPool>(2)};
    CompileReport report;
    Result<Compiled> compiled = compile(environment, graph_of(cond_in_while), {}, report);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    EXPECT_EQ(report.lookup, turn ? Outcome::hit : Outcome::miss) << report.reason;
    EXPECT_EQ(report.passes.empty(), turn == 1);
    EXPECT_EQ(report.kernels_compiled > 0, turn == 0);
    EXPECT_EQ(compiled->executable->plan().nested.size(), 2u);
  }
}

TEST(ControlFlow, EqualKernelsOfTwoBranchesAreCompiledOnce) {
  std::string json(divides_in_a_branch);
  const std::string other = R"("else_graph":"turn")";
  json.replace(json.find(other), other.size(), R"("else_graph":"same")");
  const size_t at = json.find(R"("turn":{)");
  ASSERT_NE(at, std::string::npos);
  json.replace(at, std::string::npos, R"("same":{"inputs":[{"name":"j","type":{"dtype":"i64","shape":[2,3]}}],
      "nodes":[{"name":"d","op":"div","inputs":["j","j"]},
               {"name":"q","op":"permute","inputs":["d"],"attrs":{"dims":[1,0]}}],
      "outputs":[{"name":"q","value":"q"},{"name":"j","value":"j"}]}}})");
  CompileOptions options;
  options.code = false;
  const Result<Compiled> compiled = compile_alone(graph_of(json), options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const Plan &plan = compiled->executable->plan();
  ASSERT_EQ(plan.nested.size(), 2u);
  EXPECT_EQ(plan.nested[0].steps[0].kernel, plan.nested[1].steps[0].kernel);
}

}  // namespace
}  // namespace kiln::testing
