// Graphs that are refused: each case is a text, and what the message must name.
#include <gtest/gtest.h>

#include <string>

#include "runtime/graph/json.h"
#include "runtime/ops/op.h"

namespace kiln {
namespace {

struct Refused {
  const char *name, *json, *message;
};
void PrintTo(const Refused &refused, std::ostream *out) { *out << refused.name; }

class RefusedGraph : public testing::TestWithParam<Refused> {};

TEST_P(RefusedGraph, NamesWhatIsWrongAndWhere) {
  const Result<GraphPtr> graph = read_json(GetParam().json, builtin_ops());
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find(GetParam().message), std::string::npos) << graph.status().message();
}

INSTANTIATE_TEST_SUITE_P(
    Json, RefusedGraph,
    testing::Values(Refused{"ConcatOfNothing",
                            R"({"kiln": 1, "nodes": [{"name": "y", "op": "concat", "inputs": [], "attrs": {"dim": 0}}],
                    "outputs": [{"name": "y", "value": "y"}]})",
                            "[concat] there are no inputs; expected at least one"},
                    Refused{"UnknownOp",
                            R"({"kiln": 1, "nodes": [{"name": "y", "op": "addd", "inputs": []}], "outputs": []})",
                            "nodes[0].op: unknown op 'addd'; did you mean 'add'?"},
                    Refused{"TrailingText", R"({"kiln": 1, "outputs": []} x)", "line 1, column 28"},
                    Refused{"TwoMembersOfOneName", R"({"kiln": 1, "outputs": [], "outputs": []})", "outputs"},
                    Refused{"MixedDtypes",
                            R"({"kiln": 1, "inputs": [{"name": "a", "type": {"dtype": "f32", "shape": [2]}},
                                           {"name": "b", "type": {"dtype": "i64", "shape": [2]}}],
                    "nodes": [{"name": "y", "op": "add", "inputs": ["a", "b"]}], "outputs": [{"name": "y", "value": "y"}]})",
                            "convert"},
                    Refused{"WrongInnerDims",
                            R"({"kiln": 1, "inputs": [{"name": "a", "type": {"dtype": "f32", "shape": [2, 3]}},
                                           {"name": "b", "type": {"dtype": "f32", "shape": [4, 5]}}],
                    "nodes": [{"name": "y", "op": "matmul", "inputs": ["a", "b"]}], "outputs": [{"name": "y", "value": "y"}]})",
                            "[matmul]"}),
    [](const testing::TestParamInfo<Refused> &at) { return std::string(at.param.name); });

}  // namespace
}  // namespace kiln
