#include <algorithm>

#include "runtime/graph/json.h"
#include "runtime/ops/nested.h"
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

// attention calls the graphs that it carries; what of them is of small floats is widened, as all is before.
TEST(Decompose, InlinesAndWidensTheGraphsThatCompositesCarry) {
  const std::string json = R"({"kiln":1,
    "inputs":[{"name":"q","type":{"dtype":"f32","shape":[1,2,3,4]}},{"name":"k","type":{"dtype":"f32","shape":[1,2,3,4]}},
              {"name":"v","type":{"dtype":"f32","shape":[1,2,3,4]}}],
    "nodes":[{"name":"plain","op":"attention","inputs":["q","k","v"]},
             {"name":"y","op":"attention","inputs":["q","k","v"],"attrs":{"score_graph":"half"}}],
    "graphs":{"half":{
      "inputs":[{"name":"score","type":{"dtype":"f32","shape":["B","H","T","S"]}},
                {"name":"b","type":{"dtype":"i64","shape":["B",1,1,1]}},
                {"name":"h","type":{"dtype":"i64","shape":[1,"H",1,1]}},
                {"name":"i","type":{"dtype":"i64","shape":[1,1,"T",1]}},
                {"name":"j","type":{"dtype":"i64","shape":[1,1,1,"S"]}}],
      "nodes":[{"name":"small","op":"convert","inputs":["score"],"attrs":{"dtype":"f16"}},
               {"name":"twice","op":"add","inputs":["small","small"]},
               {"name":"score2","op":"convert","inputs":["twice"],"attrs":{"dtype":"f32"}}],
      "outputs":[{"name":"y","value":"score2"}]}},
    "outputs":[{"name":"plain","value":"plain"},{"name":"y","value":"y"}]})";
  const GraphPtr graph = graph_of(json);
  EXPECT_EQ(write_json(*graph).find("mask_graph"), std::string::npos) << "what carries no graph names none";
  EXPECT_EQ(digest_of(*graph_of(write_json(*graph))), digest_of(*graph));
  EXPECT_TRUE(nested_graphs(*graph->find("plain")).empty());
  EXPECT_EQ(nested_graphs(*graph->find("y")).size(), 1u);

  Result<GraphPtr> flat = decompose(graph, builtin_ops());
  ASSERT_TRUE(flat.ok()) << flat.status().message();
  EXPECT_TRUE(verify(**flat).ok()) << verify(**flat).message();
  for (const Node &node : (*flat)->nodes()) {
    if (!node.op) continue;
    EXPECT_NE(node.op->name, "call");
    EXPECT_FALSE(node.op->name == "add" && node.results[0].dtype == DType::f16) << "a sum in f16";
  }
}

// What attention makes itself is no operand, what is captured is.
TEST(NestedGraphs, KnowWhichOperandAnInputIs) {
  const Op &attention = *find_op("attention");
  Node node;
  node.op = &attention;
  EXPECT_EQ(operand_given(node, "score_graph", 4), std::nullopt);
  EXPECT_EQ(operand_given(node, "score_graph", 5), 4u);
  EXPECT_EQ(operand_given(node, "mask_graph", 3), std::nullopt);
  EXPECT_EQ(operand_given(node, "mask_graph", 5), 5u);
  node.op = find_op("cond");
  EXPECT_EQ(operand_given(node, "then_graph", 0), 1u);
  node.op = find_op("while");
  node.attrs = {{"carried", 1}};
  EXPECT_EQ(operand_given(node, "body_graph", 0), std::nullopt) << "is carried";
  EXPECT_EQ(operand_given(node, "body_graph", 1), 1u);
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
