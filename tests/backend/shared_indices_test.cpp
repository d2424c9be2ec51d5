// One operand that tells the indices of two dims: each of its values keeps to both extents.
#include <gtest/gtest.h>

#include "runtime/graph/json.h"
#include "tests/backend/backends.h"
#include "tests/backend/cuda_backend.h"
#include "tests/unit/runtime/exec/example_call.h"

namespace kiln::testing {
namespace {

class SharedIndices : public OnABackend {};

INSTANTIATE_TEST_SUITE_P(Backends, SharedIndices, ::testing::Values("cpu", "reference", "cuda"),
                         [](const auto &test) { return std::string(test.param); });

TEST_P(SharedIndices, PutElementsOnTheDiagonalOfEachOfManyMatrices) {
  const Result<GraphPtr> graph = read_json(R"({"kiln":1,
    "inputs":[{"name":"x","type":{"dtype":"i64","shape":["n",5,"n"]}},{"name":"p","type":{"dtype":"i64","shape":["n","n"]}},
              {"name":"i","type":{"dtype":"i64","shape":["n","n"]}}],
    "nodes":[{"name":"y","op":"index_put","inputs":["x","p","i","i"],"attrs":{"dim":-2}}],
    "outputs":[{"name":"y","value":"y"}]})",
                                           builtin_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<Compiled> compiled = compile_alone(*graph, options_);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const Result<std::unique_ptr<Call>> call = Call::create(compiled->executable);
  ASSERT_TRUE(call.ok()) << call.status().message();

  std::vector<int64_t> x(20), p = {7, 8, 9, 10}, i = {0, 1, 1, 1};
  const std::array<int64_t, 3> of_x = {2, 5, 2}, of_indices = {2, 2};
  const Status status = (*call)->run(std::vector<ArrayRef>{{x.data(), DType::i64, 3, of_x.data(), nullptr},
                                                           {p.data(), DType::i64, 2, of_indices.data(), nullptr},
                                                           {i.data(), DType::i64, 2, of_indices.data(), nullptr}});
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<int64_t> expected(20);
  expected[0] = expected[10] = 7, expected[3] = expected[13] = 10;  // of several for one element the last
  EXPECT_EQ(example::integers_of(*(*call)->take(3)), expected);
}

}  // namespace
}  // namespace kiln::testing
