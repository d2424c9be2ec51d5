#include <gtest/gtest.h>

#include "runtime/backends/rows.h"
#include "runtime/compile_steps.h"
#include "runtime/ops/op.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

TEST(CompileKernels, CallsAKernelThatItMadeAndCannotReadABugInTheKernelOfTheseNodes) {
  const Target target = *Target::by_name("x86-64");
  const GraphPtr graph = test::graph_of(test::f32_graph("x", "4", R"({"name":"y","op":"neg","inputs":["x"]})", "y"));
  Result<LoweredGraphs> lowered = lower_graphs(graph, builtin_ops(), {.backend = cpu_backend});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  ASSERT_TRUE(fuse(*lowered, target).ok());
  kernel::Launch &launch = lowered->graphs[0].regions[0].fused.launches[0];
  kernel::Kernel broken = *launch.kernel;
  broken.stages[0].body.yields = {99};
  launch.kernel = std::make_shared<const kernel::Kernel>(std::move(broken));

  const PassList passes = PassList::built_in();
  const CompileEnvironment environment{.ops = builtin_ops(), .passes = passes, .cache = nullptr, .pool = nullptr};
  const CompileOptions options;
  CompileReport report;
  Work work{environment, options, report};
  const Status status = compile_kernels(work, *lowered, target).take_status();
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_EQ(status.message(), "kernel made from 'y' [neg]: its bytes do not read back");
}

}  // namespace
}  // namespace kiln
