#include <gtest/gtest.h>

#include "runtime/passes/builtin.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using test::f32_graph, test::graph_of;

constexpr const char *flat = R"({"name":"flat","op":"reshape","inputs":["x"],"attrs":{"shape":[6]}})",
                     *small = R"({"name":"small","op":"convert","inputs":["flat"],"attrs":{"dtype":"f16"}})";

// The graph's ops, in order.
std::string ops_of(const Graph &graph) {
  std::string names;
  for (const Node &node : graph.nodes())
    if (node.op) str_append(names, str_cat(names.empty() ? "" : " ", node.op->name));
  return names;
}

GraphPtr converted(const std::string &nodes, const char *outputs) {
  const Result<GraphPtr> graph = convert_early(graph_of(f32_graph("x", "2,3", nodes, outputs)));
  EXPECT_TRUE(graph.ok() && verify(**graph).ok());
  return *graph;
}

TEST(ConvertEarly, PutsAConversionBeforeTheReshapeThatItAloneReads) {
  const GraphPtr graph = converted(str_cat(flat, ",", small), "small");
  EXPECT_EQ(ops_of(*graph), "convert reshape");
  const TensorType &type = graph->type(graph->outputs()[0].value);
  EXPECT_EQ(type.dtype, DType::f16);
  EXPECT_EQ(text_of(type.dims), "[6]");
}

TEST(ConvertEarly, LeavesAReshapeThatSomethingElseReads) {
  EXPECT_EQ(ops_of(*converted(str_cat(flat, ",", small), "small flat")), "reshape convert") << "an output";
  const char *more = R"({"name":"more","op":"neg","inputs":["flat"]})";
  EXPECT_EQ(ops_of(*converted(str_cat(flat, ",", more, ",", small), "small more")), "reshape neg convert");
}

TEST(ConvertEarly, IsTheSameGraphWhereNoneFollows) {
  const GraphPtr graph = graph_of(f32_graph("x", "2,3", flat, "flat"));
  EXPECT_EQ(*convert_early(graph), graph);
}

}  // namespace
}  // namespace kiln
