// What only a call can find wrong is an error of the call on every backend that runs calls, and does no harm.
#include <gtest/gtest.h>

#include "runtime/ops/samples.h"
#include "tests/backend/backends.h"
#include "tests/backend/cuda_backend.h"

namespace kiln::testing {
namespace {

using ops::f32;
using ops::f32_data;
using ops::i64;
using ops::i64_data;
using ops::ints;
using ops::sym;

// Backends that go together: of `cuda` a process can have the stand-ins or a GPU.
enum class Where : uint8_t { cpu, standins, gpu };

class CallError : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (GetParam() == Where::cpu) backends_ = compiled_backends();
    if (GetParam() == Where::standins) {
      if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
      backends_ = {cuda_on_standins()};
    }
    if (GetParam() == Where::gpu) {
      if (const std::string reason = no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
      backends_ = {cuda_on_this_machine()};
    }
  }

  // The code of the error that every backend reports; `ok` if one reports none or another.
  Code code_of(std::string_view op, Sample sample) {
    const Result<Case> made = make_case(*find_op(op), sample, 1);
    EXPECT_TRUE(made.ok()) << made.status().message();
    const Code expected = run_on_reference(*made->graph, made->arguments).status().code();
    for (const Backend &backend : backends_) EXPECT_EQ(backend.run(*made).status().code(), expected) << backend.name;
    return expected;
  }

 private:
  std::vector<Backend> backends_;
};

TEST_P(CallError, IndexOutOfRange) {
  for (int64_t index : {int64_t{9}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(code_of("embedding", {.inputs = {f32({9, 17}), i64({3})}, .given = {{1, i64_data({3}, {0, index, 8})}}}),
              Code::out_of_range)
        << index;
    EXPECT_EQ(code_of("gather", {.inputs = {f32({9, 2}), i64({1, 2})},
                                 .attrs = {{"dim", 0}},
                                 .given = {{1, i64_data({1, 2}, {0, index})}}}),
              Code::out_of_range)
        << index;
    const TensorData indices = i64_data({2}, {0, index});
    EXPECT_EQ(
        code_of("index_select", {.inputs = {f32({9, 2}), i64({2})}, .attrs = {{"dim", 0}}, .given = {{1, indices}}}),
        Code::out_of_range)
        << index;
    EXPECT_EQ(code_of("one_hot", {.inputs = {i64({2})}, .attrs = {{"classes", Dim(9)}}, .given = {{0, indices}}}),
              Code::out_of_range)
        << index;
    const TensorData column = i64_data({2, 1}, {0, index});
    for (const char *op : {"scatter", "scatter_add", "scatter_max"})
      EXPECT_EQ(
          code_of(op,
                  {.inputs = {f32({9, 1}), i64({2, 1}), f32({2, 1})}, .attrs = {{"dim", 0}}, .given = {{1, column}}}),
          Code::out_of_range)
          << op << index;
    EXPECT_EQ(code_of("index_add",
                      {.inputs = {f32({9, 3}), i64({2}), f32({2, 3})}, .attrs = {{"dim", 0}}, .given = {{1, indices}}}),
              Code::out_of_range)
        << index;
    EXPECT_EQ(code_of("index", {.inputs = {f32({9, 3}), i64({2})}, .given = {{1, indices}}}), Code::out_of_range);
    EXPECT_EQ(code_of("index_put", {.inputs = {f32({9, 3}), f32({}), i64({2})}, .given = {{2, indices}}}),
              Code::out_of_range)
        << index;
    EXPECT_EQ(code_of("scatter_nd_add", {.inputs = {f32({9}), i64({2, 1}), f32({2})}, .given = {{1, column}}}),
              Code::out_of_range)
        << index;
    EXPECT_EQ(code_of("embedding_bag", {.inputs = {f32({9, 3}), i64({2, 1})}, .given = {{1, column}}}),
              Code::out_of_range)
        << index;
    for (const char *op : {"nll_loss", "cross_entropy"})
      EXPECT_EQ(code_of(op, {.inputs = {f32({2, 9}), i64({2})}, .given = {{1, indices}}}), Code::out_of_range)
          << op << index;
  }
}

TEST_P(CallError, SequenceLongerThanItsDim) {
  EXPECT_EQ(code_of("reverse_sequence",
                    {.inputs = {f32({2, 5}), i64({2})}, .attrs = {{"dim", 1}}, .given = {{1, i64_data({2}, {5, 6})}}}),
            Code::out_of_range);
}

TEST_P(CallError, IntegerDivisionByZero) {
  for (const char *op : {"div", "remainder", "fmod", "floor_divide"})
    EXPECT_EQ(code_of(op, {.inputs = {i64({33}), i64({1})}, .given = {{1, i64_data({1}, {0})}}}), Code::out_of_range)
        << op;
}

TEST_P(CallError, SymbolsThatMustBeEqual) {
  EXPECT_EQ(code_of("add", {.inputs = {f32({sym("n")}), f32({sym("m")})}, .sizes = {{"n", 3}, {"m", 4}}}),
            Code::type_mismatch);
}

TEST_P(CallError, ABoundThatASymbolMisses) {
  EXPECT_EQ(
      code_of("slice", {.inputs = {f32({sym("n")})}, .attrs = {{"dim", 0}, {"end", Dim(4)}}, .sizes = {{"n", 3}}}),
      Code::type_mismatch);
  EXPECT_EQ(code_of("argmax", {.inputs = {f32({2, sym("n")})}, .sizes = {{"n", 0}}}), Code::type_mismatch);
}

TEST_P(CallError, DoesNotOutliveTheCall) {
  const Sample good{.inputs = {f32({9, 17}), i64({3})}, .given = {{1, i64_data({3}, {0, 1, 8})}}};
  EXPECT_EQ(code_of("embedding", good), Code::ok);
}

std::string name_of_where(const ::testing::TestParamInfo<Where> &instance) {
  static constexpr const char *names[] = {"Cpu", "CudaOnStandins", "CudaOnAGpu"};
  return names[static_cast<size_t>(instance.param)];
}
INSTANTIATE_TEST_SUITE_P(Backends, CallError, ::testing::Values(Where::cpu, Where::standins, Where::gpu),
                         name_of_where);

}  // namespace
}  // namespace kiln::testing
