// Weights that are packed once for a binding, where what is read of them follows from sizes that change.
#include <gtest/gtest.h>

#include "runtime/graph/json.h"
#include "tests/backend/backends.h"
#include "tests/backend/cuda_backend.h"

namespace kiln::testing {
namespace {

class PackedWeights : public OnABackend {
 protected:
  // Of a graph with input 0, parameter 1, output 2.
  void open(std::string_view json, std::vector<int64_t> weight_shape) {
    const Result<GraphPtr> graph = read_json(json, builtin_ops());
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    Result<Compiled> compiled = compile_alone(*graph, options_);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    Result<std::unique_ptr<Call>> call = Call::create(compiled->executable);
    ASSERT_TRUE(call.ok()) << call.status().message();
    call_ = std::move(*call);
    weight_shape_ = std::move(weight_shape);
    weight_.resize(static_cast<size_t>(weight_shape_[0] * weight_shape_[1] * weight_shape_[2]));
    for (size_t i = 0; i < weight_.size(); ++i) weight_[i] = static_cast<float>(i);
    const Status bound = call_->bind(1, {weight_.data(), DType::f32, 3, weight_shape_.data(), nullptr}, nullptr);
    ASSERT_TRUE(bound.ok()) << bound.message();
  }
  std::vector<float> run(std::vector<int64_t> shape, std::vector<float> x, size_t count) {
    std::vector<float> y(count);
    const int64_t rows = shape[0], out[] = {rows, 1, 2};
    const Status status = call_->run(std::vector{ArrayRef{x.data(), DType::f32, 3, shape.data(), nullptr},
                                                 ArrayRef{y.data(), DType::f32, 3, out, nullptr}});
    EXPECT_TRUE(status.ok()) << status.message();
    return y;
  }

  std::unique_ptr<Call> call_;
  std::vector<int64_t> weight_shape_;
  std::vector<float> weight_;
};
INSTANTIATE_TEST_SUITE_P(Backends, PackedWeights, ::testing::Values("cpu", "reference", "cuda"),
                         [](const auto &test) { return std::string(test.param); });

// Row i by matrix i, which an iota tells, of as many as there are rows.
TEST_P(PackedWeights, OfMatricesThatAnIotaTellsAreAsManyAsRows) {
  open(R"({"kiln":1,"symbols":{"n":{"min":1,"max":3}},
    "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",1,2]}}],
    "parameters":[{"name":"w","type":{"dtype":"f32","shape":[3,2,2]}}],
    "nodes":[{"name":"i","op":"iota","inputs":[],"attrs":{"shape":["n"]}},
             {"name":"y","op":"indexed_matmul","inputs":["x","w","i"]}],
    "outputs":[{"name":"y","value":"y"}]})",
       {3, 2, 2});
  if (!call_) return;
  EXPECT_EQ(run({1, 1, 2}, {1, 1}, 2), (std::vector<float>{2, 4}));
  EXPECT_EQ(run({3, 1, 2}, {1, 1, 1, 0, 0, 1}, 6), (std::vector<float>{2, 4, 4, 5, 10, 11}));
  EXPECT_EQ(run({2, 1, 2}, {0, 1, 0, 1}, 4), (std::vector<float>{2, 3, 6, 7}));
}

// Rows by the last matrix that is not beyond their number.
TEST_P(PackedWeights, OfASliceThatBeginsAtASizeAreThoseOfTheRun) {
  open(R"({"kiln":1,"symbols":{"n":{"min":1,"max":3}},
    "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",1,2]}}],
    "parameters":[{"name":"w","type":{"dtype":"f32","shape":[4,2,2]}}],
    "nodes":[{"name":"s","op":"slice","inputs":["w"],"attrs":{"dim":0,"start":"n","end":"n + 1"}},
             {"name":"m","op":"reshape","inputs":["s"],"attrs":{"shape":[2,2]}},
             {"name":"y","op":"matmul","inputs":["x","m"]}],
    "outputs":[{"name":"y","value":"y"}]})",
       {4, 2, 2});
  if (!call_) return;
  EXPECT_EQ(run({1, 1, 2}, {1, 1}, 2), (std::vector<float>{10, 12}));
  EXPECT_EQ(run({3, 1, 2}, {1, 0, 0, 1, 1, 1}, 6), (std::vector<float>{12, 13, 14, 15, 26, 28}));
  EXPECT_EQ(run({1, 1, 2}, {1, 0}, 2), (std::vector<float>{4, 5})) << "again at the first size";
}

}  // namespace
}  // namespace kiln::testing
