#include "runtime/regions/region.h"

#include <map>

#include "runtime/backends/rows.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

constexpr std::string_view graphs = R"("graphs":{
    "on":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[3]}}],
          "nodes":[{"name":"r","op":"exp","inputs":["u"]}],"outputs":[{"name":"r","value":"r"}]},
    "off":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[3]}}],
           "nodes":[{"name":"r","op":"neg","inputs":["u"]}],"outputs":[{"name":"r","value":"r"}]}})";

std::string graph_with(std::string_view nodes, std::string_view output, std::string_view strides = "") {
  return str_cat(R"({"kiln":1,"inputs":[{"name":"p","type":{"dtype":"bool","shape":[]}},
      {"name":"x","type":{"dtype":"f32","shape":[3])",
                 strides, R"(}}],"parameters":[{"name":"w","type":{"dtype":"f32","shape":[3]}}],"nodes":[)", nodes,
                 R"(],"outputs":[{"name":"y","value":")", output, R"("}],)", graphs, "}");
}
std::string cond(std::string_view name, std::string_view operand) {
  return str_cat(R"({"name":")", name, R"(","op":"cond","inputs":["p",")", operand,
                 R"("],"attrs":{"then_graph":"on","else_graph":"off"}})");
}

std::vector<Region> regions_of(const GraphPtr &graph) {
  Result<std::vector<Region>> regions = partition(graph, cpu_backend);
  EXPECT_TRUE(regions.ok()) << regions.status().message();
  return regions.ok() ? *regions : std::vector<Region>();
}

// "code p,x -> a; control p,a -> c"
std::string text(const Graph &graph, std::span<const Region> regions) {
  return join(regions, "; ", [&](const Region &region) {
    const auto name = [&](ValueId value) { return text_of(graph, value); };
    return str_cat(region.kind == Region::Kind::code ? "code " : "control ", join(region.inputs, ",", name),
                   region.parameters.empty() ? "" : " with " + join(region.parameters, ",", name), " -> ",
                   join(region.outputs, ",", name));
  });
}

TEST(Partition, WithoutControlFlowTheGraphItselfIsTheRegion) {
  const GraphPtr graph = test::graph_of(graph_with(R"({"name":"a","op":"add","inputs":["x","w"]})", "a"));
  const std::vector<Region> regions = regions_of(graph);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].graph, graph);
  EXPECT_EQ(text(*graph, regions), "code p,x with w -> a");
}

TEST(Partition, ControlNodesSplitWhatDependsOnThemFromWhatTheyDependOn) {
  const GraphPtr graph = test::graph_of(
      graph_with(str_cat(R"({"name":"a","op":"add","inputs":["x","w"]},{"name":"b","op":"sin","inputs":["x"]},)",
                         cond("c", "a"), R"(,{"name":"d","op":"mul","inputs":["c","b"]})"),
                 "d"));
  EXPECT_EQ(text(*graph, regions_of(graph)), "code x with w -> a,b; control p,a -> c; code c,b -> d");
}

TEST(Partition, ControlNodesThatDoNotDependOnEachOtherSplitNothingBetweenThem) {
  const GraphPtr graph = test::graph_of(
      graph_with(str_cat(cond("c", "x"), R"(,{"name":"a","op":"neg","inputs":["c"]},)", cond("d", "w"),
                         R"(,{"name":"b","op":"exp","inputs":["d"]},{"name":"e","op":"add","inputs":["a","b"]})"),
                 "e"));
  EXPECT_EQ(text(*graph, regions_of(graph)), "control p,x -> c; control p,w -> d; code c,d -> e");
}

TEST(Partition, AnArgumentThatIsNotRowMajorIsCopiedForAControlNode) {
  const GraphPtr graph = test::graph_of(graph_with(cond("c", "x"), "c", R"(,"strides":[2])"));
  EXPECT_EQ(text(*graph, regions_of(graph)), "code x -> x; control p,x -> c");
}

TEST(Partition, NodesThatFallBackAndAreEqualButForNamesHaveOneGraph) {
  const GraphPtr graph = test::graph_of(graph_with(
      R"({"name":"a","op":"sin","inputs":["x"]},{"name":"b","op":"sin","inputs":["a"]},
         {"name":"c","op":"add","inputs":["a","b"]},{"name":"d","op":"add","inputs":["c","b"]},
         {"name":"e","op":"add","inputs":["d","d"]},{"name":"f","op":"sin","inputs":["w"]},
         {"name":"g","op":"add","inputs":["e","f"]})",
      "g"));
  Refusals refusals(cpu_backend);
  const Result<std::vector<Region>> regions = partition(graph, refusals, {Mode::none, Mode::none});
  ASSERT_TRUE(regions.ok()) << regions.status().message();
  std::map<std::string, const Graph *> of_node;
  for (const Region &region : *regions) {
    ASSERT_EQ(region.nodes.size(), 1u);
    of_node[graph->find(region.nodes[0])->name] = region.graph.get();
  }
  EXPECT_EQ(of_node["a"], of_node["b"]);
  EXPECT_EQ(of_node["c"], of_node["d"]);
  EXPECT_NE(of_node["c"], of_node["e"]) << "whose operands are one";
  EXPECT_NE(of_node["a"], of_node["f"]) << "which reads a parameter";
  EXPECT_NE(of_node["c"], of_node["g"]) << "whose second operand follows from a parameter alone";
}

}  // namespace
}  // namespace kiln
