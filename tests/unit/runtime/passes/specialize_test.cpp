#include "runtime/passes/specialize.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;

GraphPtr at(const std::string &json, const FixedSizes &sizes) {
  Result<GraphPtr> graph = specialize(graph_of(json), sizes);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : graph_of(json);
}

TEST(FixedSizes, AreReadInAnyOrderAndWrittenSorted) {
  const Result<FixedSizes> sizes = parse_fixed_sizes("length=128,batch=1");
  ASSERT_TRUE(sizes.ok()) << sizes.status().message();
  EXPECT_EQ(*sizes, (FixedSizes{{"batch", 1}, {"length", 128}}));
  EXPECT_EQ(text_of(*sizes), "batch=1,length=128");
}

TEST(FixedSizes, RefuseWhatIsNoSymbolAndSize) {
  for (const char *text : {"", "batch", "batch=", "=1", "batch=x", "batch=1x", "batch=1,", ",batch=1", "batch=1;n=2",
                           "batch=99999999999999999999"})
    EXPECT_FALSE(parse_fixed_sizes(text).ok()) << text;
  EXPECT_EQ(parse_fixed_sizes("n=1,n=1").status().message(), "symbol 'n' is there twice");
  EXPECT_EQ(parse_fixed_sizes("a=1,b").status().message(), "'b' is not SYMBOL=SIZE");
}

TEST(Specialize, PutsSizesIntoDimsStridesAndAttributes) {
  const GraphPtr graph = at(R"({"kiln":1,"symbols":{"n":{"min":1,"max":64},"m":{"max":9}},
      "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n","m"],"strides":["m + n","1"]}}],
      "parameters":[{"name":"w","type":{"dtype":"f32","shape":["2*n"]}}],
      "nodes":[{"name":"y","op":"expand","inputs":["w"],"attrs":{"shape":["m","2*n"]}}],
      "outputs":[{"name":"x","value":"x"},{"name":"y","value":"y"}]})",
                            {{"n", 4}});
  const TensorType &x = graph->find("x")->results[0];
  EXPECT_EQ(text_of(x.dims), "[4, m]");
  EXPECT_EQ(text_of(x.strides), "[m + 4, 1]");
  EXPECT_EQ(text_of(graph->find("w")->results[0].dims), "[8]");
  EXPECT_EQ(text_of(graph->find("y")->results[0].dims), "[m, 8]");
  EXPECT_EQ(text_of(graph->find("y")->attrs.find("shape")->second.dim_list()), "[m, 8]");
  EXPECT_FALSE(graph->symbols().contains("n"));
  EXPECT_EQ(graph->symbols().at("m").max, 9);
}

TEST(Specialize, KeepsNamesAnnotationsAndConstants) {
  const GraphPtr graph = at(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
      "constants":[{"name":"c","type":{"dtype":"f32","shape":[]},"data":[2]}],
      "nodes":[{"name":"y","op":"mul","inputs":["x","c"],"annotations":{"kiln.region":{"text":"r"}}}],
      "outputs":[{"name":"out","value":"y"}]})",
                            {{"n", 3}});
  EXPECT_EQ(graph->find("y")->annotations.find("kiln.region")->second.text_value(), "r");
  EXPECT_EQ(graph->outputs()[0].name, "out");
  EXPECT_EQ(graph->find("c")->constant->bytes.size(), 4u);
}

constexpr std::string_view scanned = R"({"kiln":1,
  "inputs":[{"name":"xs","type":{"dtype":"f32","shape":["turns","n"]}},{"name":"s","type":{"dtype":"f32","shape":["n"]}}],
  "nodes":[{"name":"y","op":"scan","inputs":["s","xs"],"attrs":{"body_graph":"f","carried":1}}],
  "outputs":[{"name":"y","value":"y:0"},{"name":"all","value":"y:1"}],
  "graphs":{"f":{"inputs":[{"name":"c","type":{"dtype":"f32","shape":["k"]}},{"name":"x","type":{"dtype":"f32","shape":["k"]}}],
    "nodes":[{"name":"z","op":"add","inputs":["c","x"]}],"outputs":[{"name":"c","value":"z"},{"name":"e","value":"z"}]}}})";

TEST(Specialize, TellsNestedGraphsWhatTheirSymbolsAre) {
  const GraphPtr all = at(std::string(scanned), {{"n", 5}});
  const Graph &body = *all->find("y")->attrs.find("body_graph")->second.graph();
  EXPECT_EQ(text_of(body.find("z")->results[0].dims), "[5]");
  EXPECT_TRUE(body.symbols().empty());
  // Of what they do not learn, they keep the symbol.
  const GraphPtr turns = at(std::string(scanned), {{"turns", 7}});
  EXPECT_EQ(text_of(turns->find("y")->results[1].dims), "[7, n]");
  EXPECT_EQ(text_of(turns->find("y")->attrs.find("body_graph")->second.graph()->find("z")->results[0].dims), "[k]");
}

TEST(Specialize, MakesAGraphThatSeveralNodesCarryOnceForEachSize) {
  const GraphPtr graph = at(R"({"kiln":1,
    "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}},{"name":"y","type":{"dtype":"f32","shape":["m"]}}],
    "nodes":[{"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"f"}},
             {"name":"b","op":"call","inputs":["a"],"attrs":{"graph":"f"}},
             {"name":"c","op":"call","inputs":["y"],"attrs":{"graph":"f"}}],
    "outputs":[{"name":"b","value":"b"},{"name":"c","value":"c"}],
    "graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
      "nodes":[{"name":"v","op":"neg","inputs":["u"]}],"outputs":[{"name":"v","value":"v"}]}}})",
                            {{"n", 2}, {"m", 3}});
  const auto called = [&](std::string_view node) { return graph->find(node)->attrs.find("graph")->second.graph(); };
  EXPECT_EQ(called("a"), called("b"));
  EXPECT_NE(called("a"), called("c"));
  EXPECT_EQ(text_of(called("c")->find("v")->results[0].dims), "[3]");
}

TEST(Specialize, NamesTheNodeThatCannotHaveTheSizes) {
  const std::string json = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}},
      {"name":"y","type":{"dtype":"f32","shape":["m"]}}],"nodes":[{"name":"s","op":"add","inputs":["x","y"]}],
      "outputs":[{"name":"s","value":"s"}]})";
  const auto refused = [&](const FixedSizes &sizes) { return specialize(graph_of(json), sizes).status().message(); };
  EXPECT_NE(refused({{"n", 2}, {"m", 3}}).find("node 's': "), std::string::npos) << refused({{"n", 2}, {"m", 3}});
  // 1 and 3 would broadcast, were it not that the graph requires them to be equal.
  EXPECT_NE(refused({{"n", 1}, {"m", 3}}).find("node 's': [add]"), std::string::npos) << refused({{"n", 1}, {"m", 3}});
  EXPECT_EQ(refused({{"n", 3}, {"m", 3}}), "");
}

TEST(Specialize, ASizeIsNotTakenForTheNumberThatSaysThatThereIsNone) {
  const std::string json = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
      "nodes":[{"name":"nz","op":"nonzero","inputs":["x"]},
               {"name":"u","op":"unique","inputs":["x"],"attrs":{"max":"n - 6"}}],
      "outputs":[{"name":"u","value":"u:0"},{"name":"nz","value":"nz:0"}]})";
  EXPECT_NE(specialize(graph_of(json), {{"n", 5}}).status().message().find("max would be -1"), std::string::npos);
}

}  // namespace
}  // namespace kiln
