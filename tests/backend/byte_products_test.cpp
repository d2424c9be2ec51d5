// Products of bytes: exact sums at the ends of their ranges, whatever instructions make them, with weights packed in
// advance or not.
#include <gtest/gtest.h>

#include "tests/backend/backends.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::testing {
namespace {

struct Product {
  const char *x, *w, *node;  // shapes, and what reads "x" and "w"
};
// Depths of 67, 3 and 18: no multiples of four. Rows and columns fill no panel.
constexpr Product products[] = {
    {"13, 67", "67, 41", R"("matmul", "inputs": ["x", "w"])"},
    {"2, 3, 67", "67, 41", R"("matmul", "inputs": ["x", "w"])"},
    {"67, 13", "41, 67", R"("matmul", "inputs": ["x", "w"], "attrs": {"transpose_a": true, "transpose_b": true})"},
    {"5, 3", "70, 3", R"("linear", "inputs": ["x", "w"])"},
    {"1, 1300", "9, 1300", R"("linear", "inputs": ["x", "w"])"},
    {"2, 3, 7, 9", "33, 3, 3, 2", R"("conv2d", "inputs": ["x", "w"], "attrs": {"padding": [1, 0]})"},
};

GraphPtr product_graph(const Product &product, std::string_view x, bool parameter) {
  const auto tensor = [](std::string_view name, std::string_view dtype, std::string_view shape) {
    return str_cat(R"({"name": ")", name, R"(", "type": {"dtype": ")", dtype, R"(", "shape": [)", shape, "]}}");
  };
  const std::string w = tensor("w", "i8", product.w);
  return test::graph_of(str_cat(R"({"kiln": 1, "inputs": [)", tensor("x", x, product.x), parameter ? "" : ", " + w,
                                R"(], "parameters": [)", parameter ? w : "", R"(], "nodes": [{"name": "y", "op": )",
                                product.node, R"(}], "outputs": [{"name": "y", "value": "y"}]})"));
}

// Every second number is the least or the greatest of its type.
TensorData extreme_tensor(const TensorType &type, std::mt19937_64 &random) {
  const int64_t least = type.dtype == DType::u8 ? 0 : -128;
  RefTensor t{type.dtype, shape_at(type.dims, {}), {}, {}};
  t.allocate();
  for (int64_t &x : t.i) x = least + (random() % 2 ? static_cast<int64_t>(random() % 256) : random() % 2 ? 255 : 0);
  return from_reference(t);
}

TEST(ByteProducts, AreSummedExactlyAtTheEndsOfTheirRanges) {
  std::vector<Backend> levels;
  for (const char *name : {"v3", "native"})
    if (Target::by_name(name)->runs_on_host()) levels.push_back(compiled(str_cat("cpu ", name), name, true));
  std::mt19937_64 random(5);
  for (const Product &product : products) {
    for (const char *x : {"i8", "u8"}) {
      for (bool parameter : {true, false}) {
        SCOPED_TRACE(str_cat(product.node, " of ", x, parameter ? ", packed" : ""));
        const GraphPtr graph = product_graph(product, x, parameter);
        Case made{"", graph, {}, {0}, {}};
        for (const auto &ids : {graph->inputs(), graph->parameters()})
          for (uint32_t id : ids) made.arguments.push_back(extreme_tensor(graph->find(id)->results[0], random));
        for (const Backend &level : levels) EXPECT_EQ(check(level, made), "");
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing
