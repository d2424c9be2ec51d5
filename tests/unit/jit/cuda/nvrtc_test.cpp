#include "jit/cuda/nvrtc.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "jit/cuda/driver.h"
#include "jit/cuda/source.h"
#include "tests/child.h"
#include "tests/standin/standin.h"
#include "tests/temporary_folder.h"
#include "tests/unit/jit/kernel/program_builder.h"

namespace kiln::cuda {
namespace {

TEST(Nvrtc, CompilesAProgramOfManyKernelsForEachArchitecture) {
  Result<Nvrtc> nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << "SKIP: " << nvrtc.status().message();
  std::string source(prelude());
  size_t count = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Result<kernel::Fused> fused = kernel::fuse(kernel::testing::random_program(seed).program, Target{}, {});
    ASSERT_TRUE(fused.ok());
    for (const kernel::Launch &launch : fused->launches) source += *emit_source(*launch.kernel, str_cat("k", count++));
  }
  for (const char *arch : {"sm_80", "sm_90a", "sm_100"}) {
    Result<Cubin> cubin = nvrtc->compile(source, arch);
    ASSERT_TRUE(cubin.ok()) << cubin.status().message().substr(0, 2000);
    EXPECT_EQ(std::string(cubin->code.begin() + 1, cubin->code.begin() + 4), "ELF");
    ASSERT_EQ(cubin->entries.size(), count) << cubin->log.substr(0, 500);
    for (const EntryUse &entry : cubin->entries) EXPECT_GT(entry.registers, 0u) << entry.name;
  }
}

TEST(Nvrtc, AttachesLogOptionsAndSourceToAFailure) {
  Result<Nvrtc> nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << "SKIP: " << nvrtc.status().message();
  Result<Cubin> cubin = nvrtc->compile("extern \"C\" __global__ void broken() { undeclared(); }", "sm_90");
  ASSERT_FALSE(cubin.ok());
  EXPECT_NE(cubin.status().message().find("undeclared"), std::string::npos) << cubin.status().message();
  EXPECT_EQ(cubin.status().message().find('\n'), std::string::npos);
  for (const char *part : {"\"log\"", "undeclared", "--gpu-architecture=sm_90", "__global__ void broken"}) {
    EXPECT_NE(cubin.status().info()->report.find(part), std::string::npos) << part;
  }
}

TEST(Nvrtc, IsNotTakenForAbsentWhereMemoryIsShort) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIP: a sanitizer ends the process where memory is short";
#endif
  test::in_child([] {
    // Copies: what another test has opened already is given again without any memory.
    const test::TemporaryFolder folder;
    for (const auto &[variable, path] :
         {std::pair("KILN_NVRTC", standin::nvrtc_path()), std::pair("KILN_LIBCUDA", standin::driver_path())}) {
      const std::string copy = folder.file(std::string(variable) + ".so");
      std::filesystem::copy_file(path, copy);
      setenv(variable, copy.c_str(), 1);
    }
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    const rlimit none{.rlim_cur = 1, .rlim_max = before.rlim_max};  // what there is of the heap stays
    ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
    const Status nvrtc = Nvrtc::open().take_status(), driver = Driver::open().take_status();
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_EQ(nvrtc.code(), Code::out_of_memory) << nvrtc.message();
    EXPECT_EQ(driver.code(), Code::out_of_memory) << driver.message();
  });
}

TEST(PtxasLog, GivesRegistersAndSpillsOfEachEntry) {
  const std::vector<EntryUse> entries = parse_ptxas_log(
      "ptxas info    : Compiling entry function 'k0' for 'sm_90'\n"
      "ptxas info    : Function properties for k0\n"
      "    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 4096 bytes smem, 400 bytes cmem[0]\n");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "k0");
  EXPECT_EQ(entries[0].registers, 32u);
  EXPECT_EQ(entries[0].spill_store_bytes, 12u);
  EXPECT_EQ(entries[0].spill_load_bytes, 16u);
  EXPECT_EQ(entries[0].shared_bytes, 4096u);
}

}  // namespace
}  // namespace kiln::cuda
