// What goes several vectors at a time: functions, and columns that are reduced. Bits do not depend on it.
#include <gtest/gtest.h>

#include "tests/backend/cuda_backend.h"
#include "tests/backend/levels.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::testing {
namespace {

GraphPtr graph_over(std::string_view shape, std::string_view type, std::string_view node) {
  return test::graph_of(str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":")", type, R"(","shape":)", shape,
                                R"(}}],"nodes":[)", node, R"(],"outputs":[{"name":"y","value":"y"}]})"));
}

// With a symbol for the size nothing is known to be whole pairs of vectors.
TEST(SideBySide, FunctionsOfKnownSizesGiveTheBitsOfSymbolicOnes) {
  constexpr const char *nodes[] = {
      R"({"name":"y","op":"gelu","inputs":["x"]})",
      R"({"name":"e","op":"exp","inputs":["x"]},{"name":"y","op":"log","inputs":["e"]})",
      R"({"name":"y","op":"softmax","inputs":["x"],"attrs":{"dim":1}})",
  };
  std::mt19937_64 random(3);
  for (const int64_t n : {1, 15, 16, 17, 31, 32, 40, 64, 100, 1040}) {
    const GraphCall known{.sizes = {}, .arguments = {random_tensor(DType::f32, {3, n}, {}, random)}};
    const GraphCall symbolic{.sizes = {{"n", n}}, .arguments = known.arguments};
    for (const char *node : nodes) {
      for (const std::string &level : levels_here()) {
        SCOPED_TRACE(str_cat(node, " ", n, " ", level));
        CompileOptions options;
        options.cpu = level;
        const Result<std::vector<Results>> expected =
            run_guarded(graph_over(R"([3,"n"])", "f32", node), {&symbolic, 1}, options, device_settings());
        const Result<std::vector<Results>> got =
            run_guarded(graph_over(str_cat("[3,", n, "]"), "f32", node), {&known, 1}, options, all_settings());
        ASSERT_TRUE(expected.ok()) << expected.status().message();
        ASSERT_TRUE(got.ok()) << got.status().message();
        EXPECT_EQ(*got, *expected);
      }
    }
  }
}

TEST(SideBySide, LeastAndGreatestOfColumnsAreThoseOfTheReference) {
  std::mt19937_64 random(4);
  constexpr int64_t rows = 300;
  for (const int64_t n : {1, 7, 40, 130, 520, 1024}) {
    for (const DType type : {DType::f32, DType::i32}) {
      GraphCall call{.sizes = {}, .arguments = {random_tensor(type, {rows, n}, {}, random)}};
      const float special[] = {-0.0F, 0.0F, std::numeric_limits<float>::quiet_NaN(),
                               -std::numeric_limits<float>::infinity()};
      for (int64_t k = 0; type == DType::f32 && k < rows * n; k += 97)
        std::memcpy(call.arguments[0].bytes.data() + 4 * k, &special[k % 4], 4);
      for (const char *op : {"max", "min"}) {
        const GraphPtr graph =
            graph_over(str_cat("[", rows, ",", n, "]"), name_of(type),
                       str_cat(R"({"name":"y","op":")", op, R"(","inputs":["x"],"attrs":{"dims":[0]}})"));
        const Result<std::vector<TensorData>> expected = run_on_reference(*graph, call.arguments);
        for (const std::string &level : levels_here()) {
          SCOPED_TRACE(str_cat(op, " ", n, " ", name_of(type), " ", level));
          CompileOptions options;
          options.cpu = level;
          const Result<std::vector<Results>> got = run_guarded(graph, {&call, 1}, options, all_settings());
          ASSERT_TRUE(got.ok()) << got.status().message();
          EXPECT_EQ(got->front(), *expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing
