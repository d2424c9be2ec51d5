// The module as libkiln opens it: through the one symbol of the shared library, and its promises.
#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "jit/base/build_id.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"
#include "tests/unit/jit/llvm/compiled_kernel.h"

namespace kiln::codegen::testing {
namespace {

std::string library_path() { return kiln::test::binary_dir + "/lib/libkiln_llvm.so"; }

// out[i] = f(x[i]) for some kernels that differ.
std::vector<Bytes> some_kernels(const Target &target) {
  std::vector<Bytes> kernels;
  for (Core op : {Core::exp, Core::abs, Core::tanh, Core::floor, Core::neg, Core::erf, Core::sqrt, Core::log})
    kernels.push_back(serialize(map_kernel(target, [op](BodyBuilder &b, int x) { return b.op(op, x); })));
  return kernels;
}

std::vector<Bytes> images_of(const std::vector<Compiled> &results) {
  std::vector<Bytes> images;
  for (const Compiled &result : results) {
    EXPECT_EQ(result.error, "");
    images.push_back(result.image);
  }
  return images;
}

TEST(Module, CompilesThroughTheTableOfTheSharedLibrary) {
  void *handle = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  auto entry = reinterpret_cast<kiln_codegen_entry_fn>(dlsym(handle, KILN_CODEGEN_ENTRY));
  ASSERT_NE(entry, nullptr);
  EXPECT_STREQ(entry()->build_id, build_id_text);
  const Target target = Target::host();
  const auto kernels = some_kernels(target);
  // The library's LLVM and the one of this program are two: they must not meet, and must agree to the byte.
  EXPECT_EQ(images_of(compile_all(kernels, target.name(), 2, 0, entry())),
            images_of(compile_all(kernels, target.name(), 1)));
}

TEST(Module, ImagesAreTheSameInEveryThreadAndAtEveryRepetition) {
  for (const Target &target : all_targets()) {
    auto kernels = some_kernels(target);
    const auto images = images_of(compile_all(kernels, target.name(), 1));
    EXPECT_EQ(images_of(compile_all(kernels, target.name(), 3)), images);
    std::reverse(kernels.begin(), kernels.end());  // what a thread compiled before must not show
    auto reversed = images_of(compile_all(kernels, target.name(), 1));
    std::reverse(reversed.begin(), reversed.end());
    EXPECT_EQ(reversed, images);
  }
}

TEST(Module, SeveralRequestsRunAtOnce) {
  const Target target = Target::host();
  const auto kernels = some_kernels(target);
  const auto expected = images_of(compile_all(kernels, target.name(), 1));
  std::vector<std::vector<Bytes>> results(4);
  {
    std::vector<std::jthread> threads;
    for (auto &result : results)
      threads.emplace_back([&] { result = images_of(compile_all(kernels, target.name(), 2)); });
  }
  for (const auto &result : results) EXPECT_EQ(result, expected);
}

TEST(Module, ABadKernelOrTargetIsAnErrorBesideGoodOnes) {
  const Target target = Target::host();
  auto kernels = some_kernels(target);
  kernels[3] = {1, 2, 3};
  const auto results = compile_all(kernels, target.name(), 2);
  ASSERT_EQ(results.size(), kernels.size());
  for (size_t k = 0; k < results.size(); ++k) EXPECT_EQ(results[k].error.empty(), k != 3) << results[k].error;
  for (const Compiled &result : compile_all(kernels, "pdp11", 1)) EXPECT_NE(result.error, "");
}

TEST(Module, DeliversIrAndAssemblyWhenAsked) {
  const Target target = Target::host();
  const auto kernels = some_kernels(target);
  const auto plain = compile_all(kernels, target.name(), 1);
  const auto texts = compile_all(kernels, target.name(), 1, KILN_CODEGEN_IR | KILN_CODEGEN_ASM);
  EXPECT_EQ(plain[0].text, "");
  EXPECT_THAT(texts[0].text, ::testing::HasSubstr("define i32 @kernel(ptr"));
  EXPECT_THAT(texts[0].text, ::testing::HasSubstr("retq"));
  EXPECT_EQ(images_of(texts), images_of(plain)) << "looking must not change the image";
  EXPECT_THAT(compile_all(kernels, target.name(), 1, KILN_CODEGEN_ASM)[0].text,
              ::testing::Not(::testing::HasSubstr("define i32")));
}

TEST(Module, StopsWhenCancelled) {
  const Target target = Target::host();
  const auto kernels = some_kernels(target);
  struct Seen {
    std::thread::id thread = std::this_thread::get_id();
    int delivered = 0;
  } seen;
  kiln::test::CodegenRequest request(kernels, target.name(), 2, 0);
  request.c.user = &seen;
  request.c.cancelled = [](void *user) -> uint32_t {
    auto &s = *static_cast<Seen *>(user);
    EXPECT_EQ(s.thread, std::this_thread::get_id());
    return s.delivered == 3;  // asked while a kernel is waited for, too: how often is a matter of time
  };
  const int32_t result = kiln_codegen_entry()->compile(
      &request.c,
      [](void *user, const kiln_codegen_result *) {
        auto &s = *static_cast<Seen *>(user);
        EXPECT_EQ(s.thread, std::this_thread::get_id());
        ++s.delivered;
      },
      &seen);
  EXPECT_EQ(result, 1);
  EXPECT_EQ(seen.delivered, 3);
}

// The names of the library's defined dynamic symbols.
std::vector<std::string> exports_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), bytes.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  std::vector<std::string> names;
  for (const Elf64_Shdr &section : sections) {
    if (section.sh_type != SHT_DYNSYM) continue;
    std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
    std::memcpy(symbols.data(), bytes.data() + section.sh_offset, section.sh_size);
    for (const Elf64_Sym &symbol : symbols)
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_name != 0)
        names.emplace_back(bytes.data() + sections[section.sh_link].sh_offset + symbol.st_name);
  }
  return names;
}

TEST(Module, ExportsItsEntryAlone) {
  EXPECT_THAT(exports_of(library_path()), ::testing::ElementsAre(KILN_CODEGEN_ENTRY));
}

TEST(Module, IsUnder45MBStripped) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIP: a sanitized library is larger than the one that is installed";
#endif
  const kiln::test::TemporaryFolder folder;
  const std::string stripped = folder.file("libkiln_llvm.so");
  ASSERT_EQ(std::system(("strip -o " + stripped + " " + library_path()).c_str()), 0);
  EXPECT_LT(std::filesystem::file_size(stripped), 45'000'000u);
}

TEST(Module, NeedsNoOtherLlvm) {
  const kiln::test::TemporaryFolder folder;
  const std::string listing = folder.file("needed");
  ASSERT_EQ(std::system(("readelf -d " + library_path() + " > " + listing).c_str()), 0);
  std::ifstream file(listing);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const char *unwanted : {"libLLVM", "libz3", "libxml2"})
    EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(unwanted)));
}

}  // namespace
}  // namespace kiln::codegen::testing
