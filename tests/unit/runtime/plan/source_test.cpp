#include "runtime/plan/source.h"

#include <gtest/gtest.h>

#include "runtime/graph/edit.h"
#include "runtime/plan/node_names.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using test::graph_of;

// y = exp(x) through a call, beside a constant of many elements, with a name that the text's own numbers could have.
std::string graph_json(std::string_view called, std::string_view inner) {
  std::string data;
  for (int i = 0; i < 100; ++i) data += str_cat(i ? "," : "", i);
  return str_cat(R"({"kiln":1,"inputs":[{"name":"%0","type":{"dtype":"f32","shape":["n",100]}}],
      "constants":[{"name":"c","type":{"dtype":"f32","shape":[100]},"data":[)",
                 data, R"(]}],"nodes":[{"name":")", called, R"(","op":"call","inputs":["%0"],"attrs":{"graph":"f"}},
      {"name":"y","op":"mul","inputs":[")",
                 called, R"(","c"]}],"outputs":[{"name":"y","value":"y"}],
      "graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k",100]}}],
        "nodes":[{"name":")",
                 inner, R"(","op":"exp","inputs":["u"]}],"outputs":[{"name":"v","value":")", inner, R"("}]}}})");
}

GraphPtr read(const Artifact &artifact) {
  Result<GraphPtr> graph = read_source(std::make_shared<const Artifact>(artifact), builtin_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : graph_of(R"({"kiln":1,"outputs":[]})");
}

TEST(Source, ReadsBackToAnEqualGraphWithItsNames) {
  const GraphPtr graph = graph_of(graph_json("a", "b"));
  Artifact artifact;
  artifact.source = source_of(*graph, *graph, {});
  EXPECT_EQ(write_json(*read(artifact)), write_json(*graph));
  EXPECT_EQ(digest_of(*read(artifact)), digest_of(*graph));
  EXPECT_EQ(artifact.source.constants.size(), 1u);
  EXPECT_LT(artifact.source.json.size(), 600u);
}

TEST(Source, KeepsNoTensorThatTheArtifactHas) {
  const GraphPtr graph = graph_of(graph_json("a", "b"));
  const TensorPtr constant = graph->find("c")->constant;
  Artifact artifact;
  artifact.constants = {*constant};
  artifact.source = source_of(*graph, *graph, {&constant, 1});
  EXPECT_TRUE(artifact.source.constants.empty());
  EXPECT_EQ(digest_of(*read(artifact)), digest_of(*graph));
}

TEST(Source, TakesTheNamesOfAnotherGraphOfItsKey) {
  const GraphPtr graph = graph_of(graph_json("a", "b")), other = graph_of(graph_json("first", "second"));
  ASSERT_EQ(digest_of(*graph), digest_of(*other));
  Artifact artifact;
  artifact.source = source_of(*graph, *graph, {});
  EXPECT_EQ(artifact.source.json.find("\"a\""), std::string::npos);
  name_nodes(*other, artifact.source.names);
  EXPECT_EQ(write_json(*read(artifact)), write_json(*other));
}

TEST(Source, NumbersWhatPassesMade) {
  const GraphPtr keyed = graph_of(graph_json("a", "b"));
  Edit edit(keyed);
  const Node &y = *keyed->find("y");
  const Result<uint32_t> made = edit.add(y.op, {{y.inputs[1], y.inputs[0]}}, {}, "swapped");
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_TRUE(edit.replace({y.id, 0}, {*made, 0}).ok());
  const GraphPtr graph = *edit.finish();
  Artifact artifact;
  artifact.source = source_of(*graph, *keyed, {});
  const GraphPtr back = read(artifact);
  EXPECT_EQ(digest_of(*back), digest_of(*graph));
  EXPECT_NE(back->find("a"), nullptr);
  EXPECT_EQ(back->find("swapped"), nullptr);
  EXPECT_EQ(back->find(back->outputs()[0].value.node)->name.substr(0, 2), "%%");  // an input's name begins with one
}

TEST(Source, ThatIsDamagedIsCorrupt) {
  const GraphPtr graph = graph_of(graph_json("a", "b"));
  Artifact artifact;
  artifact.source = source_of(*graph, *graph, {});
  artifact.source.constants.clear();
  const Status status = read_source(std::make_shared<const Artifact>(artifact), builtin_ops()).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_EQ(status.message().find("the artifact's graph after passes cannot be read: constants[0]"), 0u)
      << status.message();
}

}  // namespace
}  // namespace kiln
