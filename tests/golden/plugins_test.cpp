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
Result<GraphPtr> run_plugin(std::string_view name, GraphPtr graph) {
  kiln_context *handle = nullptr;
  EXPECT_EQ(kiln_context_create(nullptr, nullptr, &handle), nullptr);
  const std::unique_ptr<kiln_context, void (*)(kiln_context *)> owned(handle, kiln_context_destroy);
  const std::string path = str_cat(test::plugin_dir, "/", name, ".so");
  if (kiln_error *error = kiln_plugin_load(handle, path.data(), path.size(), nullptr)) return Status(error->info);
  const PassList passes = handle->context.passes();
  for (const auto &pass : passes.all()) {
    PassRun run;
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

class GoldenPlugin : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Plugin, GoldenPlugin, testing::Values("fuse_rms_norm", "fold_batch_norm", "template"),
                         [](const auto &test) { return test.param; });

TEST_P(GoldenPlugin, RewritesAsWrittenAndComputesTheSame) {
  const test::BeforeAndAfter graphs =
      test::expect_pass("plugins", GetParam(), [](GraphPtr graph) { return run_plugin(GetParam(), std::move(graph)); });
  ASSERT_NE(graphs.after, nullptr);
  expect_same_results(*graphs.before, *graphs.after);
}

}  // namespace
}  // namespace kiln
