// What takes a match's place, and in which order places are rewritten.
#include "tests/unit/runtime/patterns/patterns.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;
using test::ops_after;
using test::pattern_of;
using test::rewrite;
using test::set_of;

const std::string drop_neg = pattern_of(R"("captures":[{"name":"x"}],
  "nodes":[{"name":"a","op":"neg","inputs":["x"]},{"name":"b","op":"neg","inputs":["a"]}],"outputs":["b"],
  "replacement":{"outputs":["x"]})");

std::string chain(size_t length) {
  std::string nodes;
  for (size_t i = 0; i < length; ++i)
    nodes +=
        str_cat(i ? "," : "", R"({"name":"n)", i, R"(","op":"neg","inputs":[")", i ? str_cat("n", i - 1) : "x", "\"]}");
  return f32_graph("x", "2", nodes, str_cat("n", length - 1));
}

TEST(Rewrite, MatchesDoNotOverlap) {
  EXPECT_EQ(ops_after({drop_neg}, chain(4)), "");
  EXPECT_EQ(ops_after({drop_neg}, chain(5)), "neg");
  EXPECT_EQ(rewrite(set_of({drop_neg}), graph_of(chain(5))).count, 2u);
}

TEST(Rewrite, TheFirstPatternThatIsFoundAtANodeRewritesIt) {
  const auto to = [](std::string_view name, std::string_view op) {
    return str_cat(R"({"kiln":1,"pattern":")", name, R"(","captures":[{"name":"x"}],
      "nodes":[{"name":"n","op":"neg","inputs":["x"]}],"outputs":["n"],
      "replacement":{"nodes":[{"name":"m","op":")",
                   op, R"(","inputs":["x"]}],"outputs":["m"]}})");
  };
  EXPECT_EQ(ops_after({to("one", "abs"), to("two", "exp")}, chain(1)), "abs");
  EXPECT_EQ(ops_after({to("two", "exp"), to("one", "abs")}, chain(1)), "exp");
}

TEST(Rewrite, ASizeOfWhatIsNotThereIsAnError) {
  const std::string pattern = pattern_of(R"("captures":[{"name":"x"},{"name":"w"},
      {"name":"b","optional":true,"shape":["n"]}],
    "nodes":[{"name":"y","op":"linear","inputs":["x","w","b"]}],"outputs":["y"],
    "replacement":{"nodes":[{"name":"f","op":"full","attrs":{"value":1,"dtype":"f32","shape":["n"]}},
                            {"name":"z","op":"linear","inputs":["x","w","f"]}],"outputs":["z"]})");
  EXPECT_EQ(
      ops_after({pattern}, f32_graph("xw", "2,2", R"({"name":"y","op":"linear","inputs":["x","w"]})", "y")),
      "pattern 'p' at 'y': replacement node 'f': attribute 'shape' has size 'n', which is that of what is not there");
}

TEST(Rewrite, SizesAttributesNumbersAndDtypesComeFromThePlace) {
  const std::string pattern = pattern_of(R"("captures":[{"name":"x","shape":["a","b"]},{"name":"c","number":"any"}],
    "nodes":[{"name":"t","op":"permute","inputs":["x"],"attrs":{"dims":"any"}},
             {"name":"y","op":"add","inputs":["t","c"]}],"outputs":["y"],
    "replacement":{"nodes":[
      {"name":"f","op":"full","attrs":{"value":{"number":"c"},"dtype":{"dtype":"x"},"shape":["b","a"]}},
      {"name":"u","op":"permute","inputs":["x"],"attrs":{"dims":{"attr":"t.dims"}}},
      {"name":"z","op":"sub","inputs":["u","f"]}],"outputs":["z"]})");
  const std::string graph = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f64","shape":["n","2*n"]}}],
    "constants":[{"name":"c","type":{"dtype":"f64","shape":[]},"data":[0.125]}],
    "nodes":[{"name":"t","op":"permute","inputs":["x"],"attrs":{"dims":[1,0]}},
             {"name":"y","op":"add","inputs":["t","c"]}],"outputs":[{"name":"y","value":"y"}]})";
  const test::Rewritten made = rewrite(set_of({pattern}), graph_of(graph));
  ASSERT_EQ(made.error, "");
  ASSERT_EQ(made.count, 1u);
  for (const Node &node : made.graph->nodes())
    if (node.op && node.op->name == "full") {
      EXPECT_EQ(node.results[0].text(), "f64[2*n, n]");
      EXPECT_EQ(node.attrs.find("value")->second.f64(), 0.125);
    }
}

TEST(Rewrite, AReplacementThatDoesNotFitNamesPatternAndPlace) {
  const std::string shrinks = pattern_of(R"("captures":[{"name":"x"}],"nodes":[{"name":"n","op":"neg","inputs":["x"]}],
    "outputs":["n"],"replacement":{"nodes":[{"name":"s","op":"sum","inputs":["x"],"attrs":{"dims":[0]}}],"outputs":["s"]})");
  EXPECT_EQ(ops_after({shrinks}, chain(1)),
            "pattern 'p' at 'n0': replacing 'n0' by 'sum': the former is f32[2], the latter f32[]");
  const std::string fails = pattern_of(R"("captures":[{"name":"x"}],"nodes":[{"name":"n","op":"neg","inputs":["x"]}],
    "outputs":["n"],"replacement":{"nodes":[{"name":"s","op":"reshape","inputs":["x"],"attrs":{"shape":[5]}}],"outputs":["s"]})");
  const std::string error = ops_after({fails}, chain(1));
  EXPECT_TRUE(error.starts_with("pattern 'p' at 'n0': replacement node 's': [reshape]")) << error;
}

TEST(Rewrite, WhatReplacesInheritsAnnotationsAndTheName) {
  const std::string to_abs = pattern_of(R"("captures":[{"name":"x"}],"nodes":[{"name":"n","op":"neg","inputs":["x"]}],
    "outputs":["n"],"replacement":{"nodes":[{"name":"m","op":"abs","inputs":["x"]}],"outputs":["m"]})");
  const GraphPtr before = graph_of(
      f32_graph("x", "2", R"({"name":"n0","op":"neg","inputs":["x"],"annotations":{"mine":{"i64":7}}})", "n0"));
  const test::Rewritten made = rewrite(set_of({to_abs}), before);
  const Node &node = *made.graph->find(made.graph->outputs()[0].value.node);
  EXPECT_EQ(node.op->name, "abs");
  EXPECT_EQ(node.annotations.at("mine").i64(), 7);
}

TEST(Rewrite, AGraphWithoutAPlaceIsLeftAsItIs) {
  const GraphPtr before = graph_of(chain(1));
  const test::Rewritten made = rewrite(set_of({drop_neg}), before);
  EXPECT_EQ(made.count, 0u);
  EXPECT_EQ(digest_of(*made.graph), digest_of(*before));
}

TEST(Rewrite, TheNameOfAPatternIsItsOwn) {
  std::vector<patterns::Pattern> twice;
  for (int i = 0; i < 2; ++i) twice.push_back(*patterns::read_pattern(drop_neg, builtin_ops()));
  EXPECT_EQ(patterns::PatternSet::make(std::move(twice)).status().message(), "two patterns are named 'p'");
}

}  // namespace
}  // namespace kiln
