// Every kernel of all conformance samples and of both models, compiled by the real NVRTC: of the models for each
// architecture, of the samples for one each, which take turns; in a soak for each, too. It needs no GPU.
#include <gtest/gtest.h>

#include <iterator>
#include <string_view>

#include "jit/base/file.h"
#include "runtime/graph/json.h"
#include "tests/backend/cuda_backend.h"
#include "tests/paths.h"
#include "tests/soak.h"

namespace kiln::testing {
namespace {

Result<GraphPtr> model(std::string_view name) {
  KILN_ASSIGN(const MappedFile file,
              MappedFile::open(str_cat(test::source_dir, "/tests/models/", name, "/graph.json")));
  return read_json({reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size()}, builtin_ops());
}

constexpr const char *architectures[] = {"sm_80", "sm_90a", "sm_100"};

Result<std::vector<GraphPtr>> graphs_for(std::string_view architecture) {
  std::vector<GraphPtr> graphs;
  for (const char *name : {"digits", "chars"}) {
    KILN_ASSIGN(graphs.emplace_back(), model(name));
  }
  size_t turn = 0;
  for (const Op *op : all_ops()) {
    KILN_ASSIGN(const std::vector<Case> cases, cases_of(*op));
    for (const Case &made : cases)
      if (architectures[turn++ % std::size(architectures)] == architecture || test::soak())
        graphs.push_back(made.graph);
  }
  return graphs;
}

class CudaKernels : public ::testing::TestWithParam<const char *> {};

TEST_P(CudaKernels, CompileByNvrtc) {
  unsetenv("KILN_NVRTC");
  const Result<cuda::Nvrtc> nvrtc = cuda::Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << "SKIP: " << nvrtc.status().message();
  const bool too_old = nvrtc->major() < 12 || (nvrtc->major() == 12 && nvrtc->minor() < 8);
  if (GetParam() == std::string_view("sm_100") && too_old) GTEST_SKIP() << "SKIP: NVRTC before 12.8 has no sm_100";
  const Result<std::vector<GraphPtr>> graphs = graphs_for(GetParam());
  ASSERT_TRUE(graphs.ok()) << graphs.status().message();
  const Result<std::vector<Bytes>> kernels = kernels_of(*graphs);
  ASSERT_TRUE(kernels.ok()) << kernels.status().message();
  const Result<std::vector<CodegenModule::Output>> outputs = compile_for(GetParam(), *kernels);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message() << "\n" << outputs.status().info()->report.substr(0, 4000);
  EXPECT_GT(outputs->size(), 200u);
  uint32_t spilling = 0;
  for (const CodegenModule::Output &output : *outputs) {
    EXPECT_FALSE(output.image.code->empty());
    EXPECT_GT(output.image.use.registers, 0u) << output.image.entry;
    spilling += output.image.use.spill_bytes > 0;
  }
  std::printf("%zu kernels for %s, %u of them spill registers\n", outputs->size(), GetParam(), spilling);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudaKernels, ::testing::ValuesIn(architectures),
                         [](const auto &instance) { return std::string(instance.param); });

}  // namespace
}  // namespace kiln::testing
