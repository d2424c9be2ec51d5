#include <gtest/gtest.h>

#include "runtime/compile_steps.h"
#include "runtime/ops/op.h"
#include "tests/unit/jit/kernel/program_builder.h"

namespace kiln {
namespace {

TEST(CompileKernels, CallsAKernelThatItMadeAndCannotReadABugInTheKernelOfTheseNodes) {
  const Target target = *Target::by_name("x86-64");
  kernel::testing::ProgramBuilder b;
  b.output(b.map(kernel::Core::neg, b.input({4})));
  b.program.defs[0].node = "y";
  b.program.defs[0].op = "neg";
  Result<kernel::Fused> fused = kernel::fuse(b.program, target, {});
  ASSERT_TRUE(fused.ok()) << fused.status().message();
  kernel::Kernel broken = *fused->launches[0].kernel;
  broken.stages[0].body.yields = {99};
  fused->launches[0].kernel = std::make_shared<const kernel::Kernel>(std::move(broken));

  const PassList passes = PassList::built_in();
  const CompileEnvironment environment{.ops = builtin_ops(), .passes = passes, .cache = nullptr, .pool = nullptr};
  const CompileOptions options;
  CompileReport report;
  Work work{environment, options, report};
  const Status status = compile_kernels(work, b.program, *fused, target).take_status();
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_EQ(status.message(), "kernel made from 'y' [neg]: its bytes do not read back");
}

}  // namespace
}  // namespace kiln
