#include "runtime/passes/builtin.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

GraphPtr inlined(std::string_view json) {
  Result<GraphPtr> graph = inline_calls(test::graph_of(json), builtin_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return nullptr;
  EXPECT_TRUE(verify(**graph).ok()) << verify(**graph).message();
  for (const Node &node : (*graph)->nodes()) EXPECT_FALSE(node.op && node.op->name == "call") << node.name;
  return *graph;
}

constexpr std::string_view block = R"("graphs":{
    "inner":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k","m"]}}],
             "nodes":[{"name":"flat","op":"reshape","inputs":["u"],"attrs":{"shape":["k*m"]}}],
             "outputs":[{"name":"v","value":"flat"}]},
    "block":{"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",3]}},
                       {"name":"w","type":{"dtype":"f32","shape":[3]}}],
             "nodes":[{"name":"scaled","op":"mul","inputs":["x","w"],"annotations":{"kiln.region":{"text":"own"}}},
                      {"name":"call","op":"call","inputs":["scaled"],"attrs":{"graph":"inner"}}],
             "outputs":[{"name":"y","value":"call"}]}})";

std::string outer(std::string_view nodes, std::string_view output) {
  return str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["batch",3]}}],
      "parameters":[{"name":"w","type":{"dtype":"f32","shape":[3]}}],"nodes":[)",
                 nodes, R"(],"outputs":[{"name":"y","value":")", output, R"("}],)", block, "}");
}

TEST(InlineCalls, PutsNestedSymbolsInTheCallersTerms) {
  const GraphPtr graph =
      inlined(outer(R"({"name":"first","op":"call","inputs":["x","w"],"attrs":{"graph":"block"}})", "first"));
  const TensorType &type = graph->type(graph->outputs()[0].value);
  EXPECT_EQ(type.dims, Shape{Expr::symbol("batch") * 3});
}

TEST(InlineCalls, ResultsHaveTheDimsThatTheCallSays) {
  const GraphPtr graph = inlined(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["p"]}}],
      "nodes":[{"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"g"}}],
      "outputs":[{"name":"y","value":"a"}],
      "graphs":{"g":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
                     "nodes":[{"name":"e","op":"exp","inputs":["u"]}],"outputs":[{"name":"v","value":"e"}]}}})");
  EXPECT_EQ(graph->type(graph->outputs()[0].value).dims, Shape{4});
}

TEST(InlineCalls, InheritsTheCallsAnnotationsAndLetsInnerOnesWin) {
  const GraphPtr graph = inlined(outer(R"({"name":"first","op":"call","inputs":["x","w"],"attrs":{"graph":"block"},
      "annotations":{"kiln.region":{"text":"outer"},"user.mark":{"i64":7}}})",
                                       "first"));
  const Node &scaled = *graph->find("first.scaled"), &flat = *graph->find("first.call.flat");
  EXPECT_EQ(scaled.annotations.at("kiln.region"), AttrValue("own"));
  EXPECT_EQ(scaled.annotations.at("user.mark"), AttrValue(7));
  EXPECT_EQ(flat.annotations.at("kiln.region"), AttrValue("outer"));
}

TEST(InlineCalls, CallsOfOneGraphBecomeNodesOfTheirOwn) {
  const GraphPtr graph = inlined(outer(R"({"name":"a","op":"call","inputs":["x","w"],"attrs":{"graph":"block"}},
      {"name":"e","op":"exp","inputs":["x"]},
      {"name":"b","op":"call","inputs":["e","w"],"attrs":{"graph":"block"}},
      {"name":"y","op":"add","inputs":["a","b"]})",
                                       "y"));
  EXPECT_NE(graph->find("a.scaled"), nullptr);
  EXPECT_NE(graph->find("b.scaled"), nullptr);
}

TEST(InlineCalls, FollowsCallsOfCalls) {
  const GraphPtr graph = inlined(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4]}}],
      "nodes":[{"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"g"}},
               {"name":"b","op":"call","inputs":["a"],"attrs":{"graph":"g"}}],
      "outputs":[{"name":"y","value":"b"}],
      "graphs":{"g":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
                     "nodes":[{"name":"e","op":"exp","inputs":["u"]}],"outputs":[{"name":"v","value":"e"}]}}})");
  EXPECT_EQ(graph->find("b.e")->inputs[0].node, graph->find("a.e")->id);
}

TEST(InlineCalls, AnOutputThatIsAnOperandBecomesACopyOfIt) {
  const GraphPtr graph = inlined(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4]}}],
      "nodes":[{"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"g"}},{"name":"y","op":"neg","inputs":["a"]}],
      "outputs":[{"name":"y","value":"y"}],
      "graphs":{"g":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],"nodes":[],
                     "outputs":[{"name":"v","value":"u"}]}}})");
  const Node &copy = *graph->find(graph->find("y")->inputs[0].node);
  EXPECT_EQ(copy.op->name, "clone");
  EXPECT_EQ(copy.inputs[0].node, graph->find("x")->id);
}

}  // namespace
}  // namespace kiln
