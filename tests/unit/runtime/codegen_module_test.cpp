#include "runtime/codegen_module.h"

#include <gtest/gtest.h>

#include "jit/kernel/kernel.h"
#include "runtime/modules.h"
#include "tests/unit/jit/kernel/program_builder.h"

namespace kiln {
namespace {

TEST(CodegenModule, StopsAtItsFirstErrorAndTellsThat) {
  const Target target = *Target::by_name("x86-64");
  std::vector<Bytes> kernels = {{1, 2, 3}};  // no kernel
  for (unsigned seed = 0; kernels.size() < 40; ++seed) {
    const Result<kernel::Fused> fused = kernel::fuse(kernel::testing::random_program(seed).program, target, {});
    ASSERT_TRUE(fused.ok()) << fused.status().message();
    for (const kernel::Launch &launch : fused->launches) kernels.push_back(kernel::serialize(*launch.kernel));
  }
  size_t most_done = 0;
  CodegenModule::Request request;
  request.kernels.assign(kernels.begin(), kernels.end());
  request.target = target;
  request.cancelled = [&](size_t done) {
    most_done = std::max(most_done, done);
    return false;
  };
  Modules modules;
  const Status status = modules.of(**find_backend("cpu")).compile(request).take_status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(status.message().starts_with("kernel 0: ")) << status.message();
  EXPECT_LE(most_done, 1u) << "of " << kernels.size();
}

}  // namespace
}  // namespace kiln
