#include <algorithm>

#include "runtime/passes/builtin.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;

TEST(Decompose, LeavesNoOpThatHasADecomposition) {
  const GraphPtr graph = graph_of(f32_graph("xs", "4, 8", R"(
      {"name":"a","op":"softmax","inputs":["x"],"annotations":{"user.mark":{"i64":7}}},
      {"name":"y","op":"gelu","inputs":["a"]})",
                                            "y"));
  Result<GraphPtr> flat = decompose(graph, builtin_ops());
  ASSERT_TRUE(flat.ok()) << flat.status().message();
  EXPECT_TRUE(verify(**flat).ok()) << verify(**flat).message();
  size_t marked = 0;
  for (const Node &node : (*flat)->nodes()) {
    if (node.kind != Node::Kind::op) continue;
    EXPECT_EQ(op_of(node).decompose, nullptr) << node.op->name;
    marked += node.annotations.contains("user.mark");
  }
  EXPECT_GE(marked, 1u);  // what replaces a node inherits its annotations
}

TEST(Decompose, ReturnsAGraphWithoutCompositesAsItIs) {
  const GraphPtr graph = graph_of(f32_graph("x", "4", R"({"name":"y","op":"exp","inputs":["x"]})", "y"));
  Result<GraphPtr> flat = decompose(graph, builtin_ops());
  ASSERT_TRUE(flat.ok());
  EXPECT_EQ(*flat, graph);
}

// split is made of views, of which a graph may not give out one of what it writes.
TEST(Decompose, CopiesPartsOfAnInputThatTheGraphWrites) {
  const auto copies = [](const char *writer, const char *output) {
    const GraphPtr graph = graph_of(str_cat(
        R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4]}}],"nodes":[
            {"name":"parts","op":"split","inputs":["x"],"attrs":{"sizes":[1,3]}},
            {"name":"y","op":"exp","inputs":["x"]})",
        writer, R"(],"outputs":[{"name":"a","value":"parts:0"},{"name":"b","value":"parts:1"},{"name":"y","value":")",
        output, R"("}]})"));
    const Result<GraphPtr> flat = decompose(graph, builtin_ops());
    EXPECT_TRUE(flat.ok()) << flat.status().message();
    EXPECT_TRUE(verify(**flat).ok()) << verify(**flat).message();
    return std::ranges::count_if((*flat)->nodes(),
                                 [](const Node &node) { return node.op && node.op->name == "clone"; });
  };
  EXPECT_EQ(copies("", "y"), 0);
  EXPECT_EQ(copies(R"(,{"name":"w","op":"copy_","inputs":["x","y"]})", "w"), 2);
}

// An op that decomposes into itself.
const Op &endless_op() {
  static const Op op{{.name = "endless",
                      .doc = "x",
                      .args = {{"x", "any", dtypes(DType::f32)}},
                      .result_names = {"y"},
                      .infer = [](InferContext &c) -> Status {
                        c.results.push_back(make_type(c.inputs[0].dtype, c.inputs[0].dims));
                        return {};
                      }},
                     {.decompose = [](DecomposeContext &c) -> Status {
                       KILN_ASSIGN(const uint32_t id, c.edit.add(c.node.op, c.node.inputs));
                       c.results = {{id, 0}};
                       return {};
                     }}};
  return op;
}

TEST(Decompose, NamesAnOpWhoseDecompositionDoesNotEnd) {
  Edit edit;
  const ValueId x = *edit.input("x", make_type(DType::f32, {4}));
  Result<uint32_t> node = edit.add(&endless_op(), std::span(&x, 1), {}, "loop");
  ASSERT_TRUE(node.ok()) << node.status().message();
  ASSERT_TRUE(edit.set_outputs({{"y", {*node, 0}}}).ok());
  Result<GraphPtr> graph = edit.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Result<GraphPtr> flat = decompose(*graph, builtin_ops());
  ASSERT_FALSE(flat.ok());
  EXPECT_EQ(flat.status().code(), Code::internal);
  EXPECT_NE(flat.status().message().find("[endless]"), std::string::npos) << flat.status().message();
}

}  // namespace
}  // namespace kiln
