// Which nodes go into one piece.
#include "runtime/regions/pieces.h"

#include <map>
#include <set>

#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

// "a b | c d": the op nodes of each piece, by name.
std::string pieces(const Graph &graph, const std::vector<std::string> &after) {
  const Cuts cuts{after};
  const std::vector<uint32_t> piece_of = pieces_of(graph, cuts);
  std::map<uint32_t, std::set<std::string>> names;
  size_t place = 0;
  for (const Node &node : graph.nodes())
    if (node.op) names[piece_of[place++]].insert(node.name);
  return join(names, " | ",
              [](const auto &piece) { return join(piece.second, " ", [](const std::string &name) { return name; }); });
}

std::string node(std::string_view name, std::string_view op, std::string_view operands, bool cut = false) {
  return str_cat(R"({"name":")", name, R"(","op":")", op, R"(","inputs":[)", operands, R"(],"annotations":{)",
                 cut ? R"("kiln.cut":{"bool":true})" : "", "}}");
}

TEST(Pieces, EndAfterEachNodeOfANamedOp) {
  const GraphPtr chain = test::graph_of(test::f32_graph(
      "x", R"("n")",
      str_cat(node("1", "sin", R"("x")"), ",", node("2", "mul", R"("1","x")"), ",", node("3", "cos", R"("2")"), ",",
              node("4", "mul", R"("3","x")"), ",", node("5", "tanh", R"("4")"), ",", node("6", "mul", R"("5","5")"),
              ",", node("7", "exp", R"("6")")),
      "7"));
  EXPECT_EQ(pieces(*chain, {"sin"}), "1 | 2 3 4 5 6 7");
  EXPECT_EQ(pieces(*chain, {"cos"}), "1 2 3 | 4 5 6 7");
  EXPECT_EQ(pieces(*chain, {"sin", "cos", "tanh"}), "1 | 2 3 | 4 5 | 6 7");
  EXPECT_EQ(pieces(*chain, {"tanh"}), "1 2 3 4 5 | 6 7");
  EXPECT_EQ(pieces(*chain, {"tanh", "cos", "sin"}), "1 | 2 3 | 4 5 | 6 7");
  EXPECT_EQ(pieces(*chain, {"exp"}), "1 2 3 4 5 6 7");
}

TEST(Pieces, EndAfterMarkedNodesWhateverTheOrderOfNodes) {
  const std::string a = node("a", "sin", R"("x")", true), b = node("b", "cos", R"("y")", true),
                    c = node("c", "add", R"("a","b")"), d = node("d", "exp", R"("y")");
  const auto in_order = [&](const std::vector<std::string> &nodes) {
    const std::string list = join(nodes, ",", [](const std::string &text) { return text; });
    return pieces(*test::graph_of(test::f32_graph("xy", "4", list, "c d")), {});
  };
  EXPECT_EQ(in_order({a, b, c, d}), "a b d | c");
  EXPECT_EQ(in_order({d, b, a, c}), "a b d | c");
  EXPECT_EQ(in_order({b, d, a, c}), "a b d | c");
}

TEST(Pieces, HaveWhatFollowsFromParametersWhereItIsReadIfThatIsOnePiece) {
  const GraphPtr graph = test::graph_of(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4]}}],
      "parameters":[{"name":"v","type":{"dtype":"f32","shape":[4]}},{"name":"w","type":{"dtype":"f32","shape":[4]}}],
      "nodes":[{"name":"own","op":"exp","inputs":["v"]},{"name":"shared","op":"exp","inputs":["w"]},
        {"name":"a","op":"sin","inputs":["x"]},{"name":"b","op":"add","inputs":["a","own"]},
        {"name":"c","op":"mul","inputs":["b","shared"]},{"name":"d","op":"sin","inputs":["c"]},
        {"name":"e","op":"mul","inputs":["d","shared"]}],
      "outputs":[{"name":"y","value":"e"}]})");
  EXPECT_EQ(pieces(*graph, {"sin"}), "a shared | b c d own | e");
}

TEST(Pieces, WriteInputsInTheLastOne) {
  const GraphPtr graph = test::graph_of(test::f32_graph(
      "xy", "4",
      str_cat(node("a", "sin", R"("x")"), ",", node("b", "add", R"("a","y")"), ",", node("w", "copy_", R"("y","x")")),
      "b"));
  EXPECT_EQ(pieces(*graph, {"sin"}), "a | b w");
}

TEST(Pieces, AreWantedWhereACalledGraphHasACut) {
  std::string json = test::f32_graph("x", "4", R"({"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"f"}})", "a");
  json.insert(json.rfind('}'), R"(,"graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
      "nodes":[{"name":"p","op":"sin","inputs":["u"]}],"outputs":[{"name":"q","value":"p"}]}})");
  const std::vector<std::string> sin = {"sin"}, cos = {"cos"};
  const GraphPtr graph = test::graph_of(json);
  EXPECT_TRUE(Cuts{sin}.any_in(*graph));
  EXPECT_FALSE(Cuts{cos}.any_in(*graph));
  EXPECT_FALSE(Cuts{}.any_in(*graph));
}

}  // namespace
}  // namespace kiln
