#include "runtime/passes/builtin.h"
#include "runtime/passes/pipeline.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;

struct Merged {
  GraphPtr graph;
  uint64_t rewrites;
};
Merged merged(std::string_view json) {
  PassRun run;
  Result<GraphPtr> graph = run_pass(cse_pass(), graph_of(json), builtin_ops(), run);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return {graph.ok() ? *graph : nullptr, run.rewrites};
}

TEST(Cse, MergesChainsOfEqualNodes) {
  const Merged m = merged(f32_graph("x", "8", R"(
      {"name":"a","op":"exp","inputs":["x"]}, {"name":"b","op":"exp","inputs":["x"]},
      {"name":"c","op":"neg","inputs":["a"]}, {"name":"d","op":"neg","inputs":["b"]},
      {"name":"y","op":"add","inputs":["c","d"]})",
                                    "y"));
  EXPECT_EQ(m.rewrites, 2u);
  EXPECT_EQ(m.graph->nodes().size(), 4u);
  const Node &y = *m.graph->find("y");
  EXPECT_EQ(y.inputs[0], y.inputs[1]);
}

TEST(Cse, KeepsNodesWhoseAttributesDiffer) {
  const Merged m = merged(f32_graph("x", "4, 4", R"(
      {"name":"a","op":"sum","inputs":["x"],"attrs":{"dims":[0]}}, {"name":"b","op":"sum","inputs":["x"],"attrs":{"dims":[1]}},
      {"name":"y","op":"add","inputs":["a","b"]})",
                                    "y"));
  EXPECT_EQ(m.rewrites, 0u);
}

TEST(Cse, ComparesAnnotationsButNotDebugOnes) {
  const auto with = [](std::string_view first, std::string_view second) {
    return merged(f32_graph("x", "8",
                            str_cat(R"({"name":"a","op":"exp","inputs":["x"],"annotations":{)", first,
                                    R"(}}, {"name":"b","op":"exp","inputs":["x"],"annotations":{)", second,
                                    R"(}}, {"name":"y","op":"add","inputs":["a","b"]})"),
                            "y"))
        .rewrites;
  };
  EXPECT_EQ(with(R"("kiln.region":{"text":"r"})", R"("kiln.region":{"text":"r"})"), 1u);
  EXPECT_EQ(with(R"("kiln.region":{"text":"r"})", R"("kiln.region":{"text":"s"})"), 0u);
  EXPECT_EQ(with(R"("kiln.region":{"text":"r"})", ""), 0u);
  EXPECT_EQ(with(R"("debug.line":{"i64":1})", R"("debug.line":{"i64":2},"debug.module":{"text":"m"})"), 1u);
}

TEST(Cse, MergesConstantsOfEqualBytes) {
  const Merged m = merged(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[2]}}],
      "constants":[{"name":"p","type":{"dtype":"f32","shape":[]},"data":[1.5]},
                   {"name":"q","type":{"dtype":"f32","shape":[]},"data":[1.5]},
                   {"name":"r","type":{"dtype":"f32","shape":[]},"data":[2.5]}],
      "nodes":[{"name":"a","op":"add","inputs":["x","p"]},{"name":"b","op":"add","inputs":["x","q"]},
               {"name":"c","op":"mul","inputs":["a","b"]},{"name":"d","op":"mul","inputs":["c","r"]}],
      "outputs":[{"name":"y","value":"d"}]})");
  EXPECT_EQ(m.rewrites, 2u);
  EXPECT_EQ(m.graph->find("q"), nullptr);
}

TEST(Cse, LeavesOutputsInStorageOfTheirOwn) {
  const Merged m = merged(
      f32_graph("x", "8", R"({"name":"a","op":"exp","inputs":["x"]}, {"name":"b","op":"exp","inputs":["x"]})", "a b"));
  EXPECT_EQ(m.rewrites, 0u);
}

TEST(Cse, LeavesWritesAlone) {
  const Merged m = merged(f32_graph("xy", "8", R"({"name":"a","op":"copy_","inputs":["x","y"]})", "a"));
  EXPECT_EQ(m.rewrites, 0u);
  EXPECT_NE(m.graph->find("a"), nullptr);
}

TEST(Cse, MergesWhatDecompositionsHaveInCommon) {
  const GraphPtr graph = graph_of(f32_graph("x", "4, 8", R"(
      {"name":"a","op":"softmax","inputs":["x"]}, {"name":"b","op":"softmax","inputs":["x"]},
      {"name":"y","op":"add","inputs":["a","b"]})",
                                            "y"));
  Result<GraphPtr> flat = decompose(graph, builtin_ops());
  ASSERT_TRUE(flat.ok()) << flat.status().message();
  Result<GraphPtr> smaller = merge_equal_nodes(*flat);
  ASSERT_TRUE(smaller.ok()) << smaller.status().message();
  EXPECT_TRUE(verify(**smaller).ok()) << verify(**smaller).message();
  const size_t once = (*flat)->nodes().size() / 2 + 1;
  EXPECT_LE((*smaller)->nodes().size(), once + 1);
}

}  // namespace
}  // namespace kiln
