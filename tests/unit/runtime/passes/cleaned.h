// Runs one built-in pass on a graph.
#pragma once
#include "runtime/passes/builtin.h"
#include "runtime/passes/pipeline.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::test {

struct Cleaned {
  GraphPtr before, graph;
  uint64_t rewrites = 0;

  // The node that makes the output, and the name of what it reads.
  const Node &made(size_t output = 0) const { return *graph->find(graph->outputs()[output].value.node); }
  std::string read(size_t operand = 0) const { return graph->find(made().inputs[operand].node)->name; }
};

inline Cleaned cleaned(Pass (*pass)(), std::string_view json) {
  PassRun run;
  const GraphPtr before = graph_of(json);
  if (!before) return {};
  Result<GraphPtr> graph = run_pass(pass(), before, builtin_ops(), run);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  EXPECT_TRUE(verify(**graph).ok()) << verify(**graph).message();
  EXPECT_TRUE(verify_same_signature(*before, **graph).ok());
  EXPECT_TRUE(outputs_that_came_to_share(*before, **graph).empty());
  EXPECT_EQ(run.rewrites == 0, before == *graph) << "a pass that changes nothing leaves the graph itself";
  return {before, *graph, run.rewrites};
}

}  // namespace kiln::test
