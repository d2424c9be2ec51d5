// Values of 16 bits are rounded once, where the op of the graph that makes them ends.
#include <gtest/gtest.h>

#include "jit/base/small_float.h"
#include "tests/backend/backends.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::testing {
namespace {

TensorData halves(const std::vector<double> &values, DType dtype) {
  RefTensor t{dtype, {static_cast<int64_t>(values.size())}, values, {}};
  return from_reference(t);
}

Case case_of(GraphPtr graph, std::vector<TensorData> arguments) {
  const size_t outputs = graph->outputs().size();
  return {"", std::move(graph), std::move(arguments), std::vector<double>(outputs, 0.0), {}};
}

GraphPtr graph_of(std::string_view dtype, std::string_view nodes, size_t size) {
  return test::graph_of(str_cat(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": ")", dtype,
                                R"(", "shape": [)", size, R"(]}}], "nodes": [)", nodes,
                                R"(], "outputs": [{"name": "y", "value": "y"}]})"));
}

TEST(SmallFloats, EachAdditionRoundsItsSum) {
  // 2048 + 1 is a tie, which goes to 2048, twice; 2048 + (1 + 1) would be 2050.
  const Case made = case_of(graph_of("f16", R"({"name": "one", "op": "full", "attrs": {"value": 1, "dtype": "f16",
      "shape": []}}, {"name": "s", "op": "add", "inputs": ["x", "one"]}, {"name": "y", "op": "add", "inputs": ["s", "one"]})",
                                     2),
                            {halves({2048, 3}, DType::f16)});
  for (const Backend &backend : backends()) {
    const Result<std::vector<TensorData>> got = backend.run(made);
    ASSERT_TRUE(got.ok()) << backend.name << ": " << got.status().message();
    EXPECT_EQ(to_reference((*got)[0]).f, (std::vector<double>{2048, 5})) << backend.name;
  }
}

// Fused or not, the bits are the same: what lies between two ops is rounded either way.
TEST(SmallFloats, FusionChangesNoBit) {
  for (const char *dtype : {"f16", "bf16"}) {
    std::vector<double> values;
    for (int i = 0; i < 300; ++i) values.push_back(std::sin(i * 0.7) * 3);
    const Case made = case_of(graph_of(dtype, R"({"name": "a", "op": "gelu", "inputs": ["x"]},
        {"name": "b", "op": "mul", "inputs": ["a", "x"]}, {"name": "c", "op": "softmax", "inputs": ["b"]},
        {"name": "d", "op": "sqrt", "inputs": ["c"]}, {"name": "y", "op": "sub", "inputs": ["d", "b"]})",
                                       300),
                              {halves(values, *dtype_from_name(dtype))});
    for (const char *level : {"x86-64", "v3", "v4"}) {
      if (!Target::by_name(level)->runs_on_host()) continue;
      const auto fused = compiled("", level, true).run(made), apart = compiled("", level, false).run(made);
      ASSERT_TRUE(fused.ok() && apart.ok());
      EXPECT_EQ((*fused)[0].bytes, (*apart)[0].bytes) << dtype << " at " << level;
    }
  }
}

}  // namespace
}  // namespace kiln::testing
