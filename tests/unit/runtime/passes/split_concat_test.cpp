#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/ops/reference.h"
#include "runtime/passes/builtin.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using test::concat_of, test::graph_of;

std::vector<const Node *> concats(const Graph &graph) {
  std::vector<const Node *> found;
  for (const Node &node : graph.nodes()) {
    if (node.op) found.push_back(&node);
  }
  return found;
}

TEST(SplitConcats, MakesATreeOfAWideOneThatKeepsTheOrder) {
  const GraphPtr wide = graph_of(concat_of(2000, R"({"user.mark":{"i64":7}})"));
  const Result<GraphPtr> tree = split_concats(wide);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  ASSERT_TRUE(verify(**tree).ok()) << verify(**tree).message();
  size_t operands = 0;
  for (const Node *node : concats(**tree)) {
    EXPECT_LE(node->inputs.size(), 32u);
    EXPECT_TRUE(node->annotations.contains("user.mark"));
    operands += node->inputs.size();
  }
  EXPECT_EQ(operands, 2000u + 63 + 2) << "each level reads all values of the level before it";

  std::vector<RefTensor> numbers;
  for (int k = 0; k < 2000; ++k) numbers.push_back({DType::f32, {1}, {static_cast<double>(k)}, {}});
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &number : numbers) pointers.push_back(&number);
  const Result<std::vector<RefTensor>> results = run_reference(**tree, pointers);
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ(results->front().f.size(), 2000u);
  EXPECT_TRUE(std::ranges::is_sorted(results->front().f));
}

TEST(SplitConcats, LeavesANarrowOneAsItIs) {
  const GraphPtr narrow = graph_of(concat_of(32));
  const Result<GraphPtr> same = split_concats(narrow);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(*same, narrow);
  EXPECT_EQ(concats(**split_concats(graph_of(concat_of(33)))).size(), 3u);
}

}  // namespace
}  // namespace kiln
