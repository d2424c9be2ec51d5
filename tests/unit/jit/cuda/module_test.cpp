// The module as libkiln opens it: through the one symbol of the shared library, and its promises.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <set>

#include "jit/base/build_id.h"
#include "jit/base/codegen.h"
#include "jit/cuda/nvrtc.h"
#include "tests/child.h"
#include "tests/no_threads.h"
#include "tests/standin/standin.h"
#include "tests/unit/jit/codegen_request.h"
#include "tests/unit/jit/kernel/program_builder.h"

namespace kiln::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Delivered {
  uint64_t kernel, image_number;
  Bytes image;
  std::string entry, compiler, text, error, report;
  kiln_kernel_use use;
  Code code;
};

const kiln_codegen_table *table() {
  void *handle = dlopen((test::binary_dir + "/lib/libkiln_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  auto entry = handle ? reinterpret_cast<kiln_codegen_entry_fn>(dlsym(handle, KILN_CODEGEN_ENTRY)) : nullptr;
  EXPECT_NE(entry, nullptr) << dlerror();
  return entry ? entry() : nullptr;
}

std::vector<Delivered> compile(const std::vector<Bytes> &kernels, std::string_view arch, uint32_t want = 0,
                               uint32_t threads = 2) {
  const test::CodegenRequest request(kernels, arch, threads, want);
  std::vector<Delivered> out;
  const int32_t result = table()->compile(
      &request.c,
      [](void *user, const kiln_codegen_result *r) {
        const auto text = [](const char *data, uint64_t size) { return std::string(data ? data : "", size); };
        static_cast<std::vector<Delivered> *>(user)->push_back(
            {r->kernel, r->image_number, Bytes(r->image, r->image + r->image_size), text(r->entry, r->entry_size),
             text(r->compiler, r->compiler_size), text(r->text, r->text_size), text(r->error, r->error_size),
             text(r->error_report, r->error_report_size), r->use ? *r->use : kiln_kernel_use{},
             static_cast<Code>(r->error_code)});
      },
      &out);
  EXPECT_EQ(result, 0);
  return out;
}

std::vector<Bytes> some_kernels(unsigned programs) {
  std::vector<Bytes> kernels;
  for (unsigned seed = 0; seed < programs; ++seed) {
    const Result<kernel::Fused> fused =
        kernel::fuse(kernel::testing::random_program(seed).program, Target::device("sm_90"), {});
    EXPECT_TRUE(fused.ok());
    for (const kernel::Launch &launch : fused->launches) kernels.push_back(kernel::serialize(*launch.kernel));
  }
  return kernels;
}

TEST(CudaModule, IsOfThisBuildAndRunsWhatItCompiles) {
  EXPECT_STREQ(table()->build_id, build_id_text);
  EXPECT_NE(table()->device, nullptr);
}

TEST(CudaModule, PutsManyKernelsIntoAProgramAndCompilesEqualOnesOnce) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  standin::use_nvrtc();
  std::vector<Bytes> kernels = some_kernels(20);
  const size_t distinct = std::set<Bytes>(kernels.begin(), kernels.end()).size();
  const size_t count = kernels.size();
  for (size_t i = 0; i < 3; ++i) kernels.push_back(Bytes(kernels[i]));  // again
  const std::vector<Delivered> all = compile(kernels, "sm_90");
  ASSERT_EQ(all.size(), kernels.size());
  std::set<uint64_t> images;
  std::set<std::string> entries;
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i].error, "");
    EXPECT_EQ(all[i].kernel, i);
    EXPECT_THAT(all[i].entry, StartsWith("kiln_"));
    EXPECT_EQ(all[i].use.group_threads, 256u);
    EXPECT_EQ(all[i].compiler, "NVRTC 0.0");
    images.insert(all[i].image_number);
    entries.insert(all[i].entry);
  }
  EXPECT_EQ(entries.size(), distinct);
  EXPECT_EQ(images.size(), (distinct + 15) / 16);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all[count + i].entry, all[i].entry);
    EXPECT_EQ(all[count + i].image, all[i].image);
  }
}

TEST(CudaModule, GivesTheSourceWithoutACompiler) {
  setenv("KILN_NVRTC", "/nowhere/libnvrtc.so", 1);
  const std::vector<Delivered> all = compile(some_kernels(2), "native", KILN_CODEGEN_SOURCE | KILN_CODEGEN_TEXT_ONLY);
  std::string program;
  for (const Delivered &one : all) {
    ASSERT_EQ(one.error, "");
    EXPECT_TRUE(one.image.empty());
    EXPECT_THAT(one.text, HasSubstr("__global__"));
    program += one.text;
  }
  EXPECT_EQ(program.find("typedef long long kiln_i64"), program.rfind("typedef long long kiln_i64"));
}

TEST(CudaModule, WithoutNvrtcNamesWhatWasTriedAndTheVariable) {
  setenv("KILN_NVRTC", "/nowhere/libnvrtc.so", 1);
  for (const Delivered &one : compile(some_kernels(1), "sm_90")) {
    EXPECT_EQ(one.code, Code::unimplemented);
    EXPECT_THAT(one.error, HasSubstr("/nowhere/libnvrtc.so"));
    EXPECT_THAT(one.error, HasSubstr("KILN_NVRTC"));
  }
}

TEST(CudaModule, AKernelThatCannotBeReadIsItsOwnError) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  standin::use_nvrtc();
  std::vector<Bytes> kernels = some_kernels(1);
  kernels.push_back({1, 2, 3});
  const std::vector<Delivered> all = compile(kernels, "sm_90");
  EXPECT_EQ(all.front().error, "");
  EXPECT_EQ(all.back().code, Code::corrupt);
  EXPECT_THAT(all.back().error, HasSubstr("kernel"));
}

TEST(CudaModule, WithoutThreadsTheCallerCompiles) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  standin::use_nvrtc();
  test::in_child([] {
    if (!test::forbid_threads()) GTEST_SKIP() << "this system filters no system calls";
    const std::vector<Delivered> all = compile(some_kernels(2), "sm_90");
    EXPECT_EQ(all.size(), some_kernels(2).size());
    for (const Delivered &one : all) {
      EXPECT_EQ(one.error, "");
      EXPECT_FALSE(one.image.empty());
    }
  });
}

TEST(CudaModule, WithNvrtcTellsRegistersAndAttachesLogOptionsAndSource) {
  unsetenv("KILN_NVRTC");
  if (const Status nvrtc = Nvrtc::open().take_status(); !nvrtc.ok()) GTEST_SKIP() << "SKIP: " << nvrtc.message();
  const std::vector<Delivered> all = compile(some_kernels(3), "sm_90");
  for (const Delivered &one : all) {
    EXPECT_EQ(one.error, "");
    EXPECT_GT(one.use.registers, 0u);
  }
  const std::vector<Delivered> bad = compile(some_kernels(1), "sm_999");
  EXPECT_THAT(bad.front().error, HasSubstr("[nvrtc]"));
  for (const char *part : {"\"log\"", "--gpu-architecture=sm_999", "\"source\"", "__global__"})
    EXPECT_THAT(bad.front().report, HasSubstr(part));
}

}  // namespace
}  // namespace kiln::cuda
