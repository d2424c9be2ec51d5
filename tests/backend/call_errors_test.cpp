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

class CallError : public ::testing::Test {
 protected:
  // The code of the error that every backend reports; `ok` if one reports none or another.
  static Code code_of(std::string_view op, Sample sample) {
    const Result<Case> made = make_case(*find_op(op), sample, 1);
    EXPECT_TRUE(made.ok()) << made.status().message();
    const Code expected = run_on_reference(*made->graph, made->arguments).status().code();
    std::vector<Backend> all = compiled_backends();
    if (standin::has_compiler()) all.push_back(cuda_on_standins());
    for (const Backend &backend : all) EXPECT_EQ(backend.run(*made).status().code(), expected) << backend.name;
    return expected;
  }
};

TEST_F(CallError, IndexOutOfRange) {
  for (int64_t index : {int64_t{9}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(code_of("embedding", {.inputs = {f32({9, 17}), i64({3})}, .given = {{1, i64_data({3}, {0, index, 8})}}}),
              Code::out_of_range)
        << index;
    EXPECT_EQ(code_of("gather", {.inputs = {f32({9, 2}), i64({1, 2})},
                                 .attrs = {{"dim", 0}},
                                 .given = {{1, i64_data({1, 2}, {0, index})}}}),
              Code::out_of_range)
        << index;
  }
}

TEST_F(CallError, IntegerDivisionByZero) {
  for (const char *op : {"div", "remainder"})
    EXPECT_EQ(code_of(op, {.inputs = {i64({33}), i64({1})}, .given = {{1, i64_data({1}, {0})}}}), Code::out_of_range)
        << op;
}

TEST_F(CallError, SymbolsThatMustBeEqual) {
  EXPECT_EQ(code_of("add", {.inputs = {f32({sym("n")}), f32({sym("m")})}, .sizes = {{"n", 3}, {"m", 4}}}),
            Code::type_mismatch);
}

TEST_F(CallError, ABoundThatASymbolMisses) {
  EXPECT_EQ(
      code_of("slice", {.inputs = {f32({sym("n")})}, .attrs = {{"dim", 0}, {"end", Dim(4)}}, .sizes = {{"n", 3}}}),
      Code::type_mismatch);
  EXPECT_EQ(code_of("argmax", {.inputs = {f32({2, sym("n")})}, .sizes = {{"n", 0}}}), Code::type_mismatch);
}

TEST_F(CallError, DoesNotOutliveTheCall) {
  const Sample good{.inputs = {f32({9, 17}), i64({3})}, .given = {{1, i64_data({3}, {0, 1, 8})}}};
  EXPECT_EQ(code_of("embedding", good), Code::ok);
}

}  // namespace
}  // namespace kiln::testing
