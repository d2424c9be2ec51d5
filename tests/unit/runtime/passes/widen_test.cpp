#include <gtest/gtest.h>

#include "runtime/ops/op.h"
#include "runtime/passes/builtin.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

GraphPtr half_graph(std::string_view nodes) {
  return test::graph_of(str_cat(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f16", "shape": [4, 8]}}],
      "nodes": [)",
                                nodes, R"(], "outputs": [{"name": "y", "value": "y"}]})"));
}

std::vector<std::string> ops_of(const Graph &graph) {
  std::vector<std::string> all;
  for (const Node &node : graph.nodes())
    if (node.kind == Node::Kind::op) all.push_back(str_cat(node.op->name, " ", name_of(node.results[0].dtype)));
  return all;
}

TEST(Widen, PutsAnOpWithArithmeticBetweenConversions) {
  const Result<GraphPtr> wide = widen(half_graph(R"({"name": "y", "op": "softmax", "inputs": ["x"],
      "annotations": {"user.mark": {"i64": 7}}})"),
                                      builtin_ops());
  ASSERT_TRUE(wide.ok()) << wide.status().message();
  EXPECT_TRUE(verify(**wide).ok());
  EXPECT_EQ(ops_of(**wide), (std::vector<std::string>{"convert f32", "softmax f32", "convert f16"}));
  for (const Node &node : (*wide)->nodes()) {
    if (node.kind != Node::Kind::op) continue;
    EXPECT_TRUE(node.annotations.contains("user.mark")) << node.op->name;
  }
}

TEST(Widen, RoundsBetweenTwoOps) {
  const Result<GraphPtr> wide = widen(half_graph(R"({"name": "a", "op": "exp", "inputs": ["x"]},
      {"name": "y", "op": "neg", "inputs": ["a"]})"),
                                      builtin_ops());
  ASSERT_TRUE(wide.ok());
  EXPECT_EQ(ops_of(**wide), (std::vector<std::string>{"convert f32", "exp f32", "convert f16", "convert f32", "neg f32",
                                                      "convert f16"}));
}

TEST(Widen, LeavesWhatMovesElementsAndOtherTypesAlone) {
  const GraphPtr moves = half_graph(R"({"name": "a", "op": "permute", "inputs": ["x"], "attrs": {"dims": [1, 0]}},
      {"name": "b", "op": "concat", "inputs": ["a", "a"], "attrs": {"dim": 0}},
      {"name": "y", "op": "convert", "inputs": ["b"], "attrs": {"dtype": "i32"}})");
  Result<GraphPtr> same = widen(moves, builtin_ops());
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(*same, moves);
}

TEST(Widen, AccumulatesInThirtyTwoBitsWhereSixteenAreAskedForUnlessTheyDoNotHoldWhatComesIn) {
  for (const auto &[from, in] :
       {std::pair{"f32", "f32"}, {"i16", "f32"}, {"i32", "f64"}, {"i64", "f64"}, {"f64", "f64"}}) {
    const GraphPtr sum = half_graph(str_cat(R"({"name": "w", "op": "convert", "inputs": ["x"], "attrs": {"dtype": ")",
                                            from, R"("}}, {"name": "y", "op": "sum", "inputs": ["w"], "attrs": {"dtype":
                                            "bf16"}})"));
    const Result<GraphPtr> wide = widen(sum, builtin_ops());
    ASSERT_TRUE(wide.ok()) << wide.status().message();
    EXPECT_EQ(ops_of(**wide),
              (std::vector{str_cat("convert ", from), str_cat("sum ", in), std::string("convert bf16")}));
  }
}

TEST(Widen, DrawsNumbersInThirtyTwoBitsWhateverTheirSeedIs) {
  const GraphPtr drawn = test::graph_of(R"({"kiln": 1, "inputs": [{"name": "s", "type": {"dtype": "u64", "shape": []}},
      {"name": "c", "type": {"dtype": "u64", "shape": []}}],
      "nodes": [{"name": "y", "op": "normal", "inputs": ["s", "c"], "attrs": {"shape": [3], "dtype": "bf16"}}],
      "outputs": [{"name": "y", "value": "y"}]})");
  const Result<GraphPtr> wide = widen(drawn, builtin_ops());
  ASSERT_TRUE(wide.ok()) << wide.status().message();
  EXPECT_EQ(ops_of(**wide), (std::vector<std::string>{"normal f32", "convert bf16"}));
}

}  // namespace
}  // namespace kiln
