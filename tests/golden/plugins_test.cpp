// The rewrites of the plugins that come with Kiln, as texts; and that what they made computes the same.
#include <kiln/kiln.h>

#include <cmath>

#include "abi/src/handles.h"
#include "runtime/ops/reference.h"
#include "runtime/passes/pipeline.h"
#include "tests/golden/golden.h"

namespace kiln {
namespace {

// The one pass of a plugin, run as a compile runs it.
Result<GraphPtr> run_plugin(std::string_view name, GraphPtr graph, PassRun &run) {
  kiln_context *handle = nullptr;
  EXPECT_EQ(kiln_context_create(nullptr, nullptr, &handle), nullptr);
  const std::unique_ptr<kiln_context, void (*)(kiln_context *)> owned(handle, kiln_context_destroy);
  const std::string path = str_cat(test::plugin_dir, "/", name, ".so");
  if (kiln_error *error = kiln_plugin_load(handle, path.data(), path.size(), nullptr)) return Status(error->info);
  const PassList passes = handle->context.passes();
  for (const auto &pass : passes.all()) {
    if (pass->name == name) return run_pass(*pass, std::move(graph), builtin_ops(), run);
  }
  return error(Code::unknown_name, path, " has no pass '", name, "'");
}

// Inputs and parameters with numbers between 0.1 and 1.1, the same for both graphs; "n" is 3.
std::vector<RefTensor> arguments_of(const Graph &graph) {
  std::vector<RefTensor> arguments;
  uint32_t state = 1;
  for (std::span<const uint32_t> side : {graph.inputs(), graph.parameters()}) {
    for (uint32_t id : side) {
      RefTensor &tensor = arguments.emplace_back();
      for (const Dim &dim : graph.type({id, 0}).dims)
        tensor.shape.push_back(dim.evaluate([](const std::string &) { return int64_t{3}; }));
      tensor.allocate();
      for (double &number : tensor.f) {
        state = state * 1664525 + 1013904223;
        number = 0.1 + (state >> 8) / double{1 << 24};
      }
    }
  }
  return arguments;
}

void expect_same_results(const Graph &before, const Graph &after) {
  const std::vector<RefTensor> arguments = arguments_of(before);
  std::vector<const RefTensor *> given;
  for (const RefTensor &tensor : arguments) given.push_back(&tensor);
  const auto expected = run_reference(before, given), actual = run_reference(after, given);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  for (size_t output = 0; output < expected->size(); output++) {
    for (size_t i = 0; i < (*expected)[output].f.size(); i++) {
      const double want = (*expected)[output].f[i];
      EXPECT_NEAR((*actual)[output].f[i], want, 1e-9 * (1 + std::fabs(want))) << "output " << output << " at " << i;
    }
  }
}

// A graph of the same signature that calls `graph`, whose parameters the nested graph takes as inputs.
Result<GraphPtr> call_of(const Graph &graph) {
  Edit nested, edit;
  std::map<ValueId, ValueId> values;
  std::vector<ValueId> operands;
  for (const auto &[name, info] : graph.symbols()) {
    KILN_TRY(nested.declare_symbol(name, info));
    KILN_TRY(edit.declare_symbol(name, info));
  }
  for (std::span<const uint32_t> side : {graph.inputs(), graph.parameters()}) {
    for (uint32_t id : side) {
      const Node &node = *graph.find(id);
      KILN_ASSIGN((values[{id, 0}]), nested.input(node.name, node.results[0]));
      const bool is_input = node.kind == Node::Kind::input;
      KILN_ASSIGN(operands.emplace_back(),
                  is_input ? edit.input(node.name, node.results[0]) : edit.parameter(node.name, node.results[0]));
    }
  }
  for (const Node &node : graph.nodes()) {
    if (node.kind == Node::Kind::constant) {
      KILN_ASSIGN((values[{node.id, 0}]), nested.constant(node.constant, node.name));
    }
    if (node.kind != Node::Kind::op) continue;
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(values.at(input));
    KILN_ASSIGN(const uint32_t id, nested.add(node.op, inputs, node.attrs, node.name, node.annotations));
    for (uint32_t k = 0; k < node.results.size(); ++k) values[{node.id, k}] = {id, k};
  }
  std::vector<GraphOutput> outputs;
  for (const GraphOutput &output : graph.outputs()) outputs.push_back({output.name, values.at(output.value)});
  KILN_TRY(nested.set_outputs(outputs));
  KILN_ASSIGN(GraphPtr called, nested.finish());
  KILN_ASSIGN(const uint32_t call, edit.add(find_op("call"), operands, {{"graph", called}}));
  for (uint32_t k = 0; k < outputs.size(); ++k) outputs[k].value = {call, k};
  KILN_TRY(edit.set_outputs(outputs));
  return edit.finish();
}

class GoldenPlugin : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Plugin, GoldenPlugin, testing::Values("fuse_rms_norm", "fold_batch_norm", "template"),
                         [](const auto &test) { return test.param; });

TEST_P(GoldenPlugin, RewritesAsWrittenAndComputesTheSame) {
  const test::BeforeAndAfter graphs = test::expect_pass("plugins", GetParam(), [](GraphPtr graph) {
    PassRun run;
    return run_plugin(GetParam(), std::move(graph), run);
  });
  ASSERT_NE(graphs.after, nullptr);
  expect_same_results(*graphs.before, *graphs.after);

  PassRun alone, called;
  ASSERT_TRUE(run_plugin(GetParam(), graphs.before, alone).ok());
  const Result<GraphPtr> calling = call_of(*graphs.before);
  ASSERT_TRUE(calling.ok()) << calling.status().message();
  const Result<GraphPtr> after = run_plugin(GetParam(), *calling, called);
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_GT(alone.rewrites, 0u);
  EXPECT_EQ(called.rewrites, alone.rewrites) << "a pass finds in a call what it finds outside";
  expect_same_results(**calling, **after);
}

}  // namespace
}  // namespace kiln
