#include "jit/base/dynamic_library.h"
#include "tests/temporary_folder.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace kiln {
namespace {

TEST(DynamicLibrary, FailuresCarryTheLoadersWords) {
  Result<DynamicLibrary> none = DynamicLibrary::open("/nowhere/libnone.so");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::io);
  EXPECT_NE(none.status().message().find("No such file"), std::string::npos);
  Result<DynamicLibrary> libm = DynamicLibrary::open("libm.so.6");
  ASSERT_TRUE(libm.ok());
  auto cosine = libm->symbol<double (*)(double)>("cos");
  ASSERT_TRUE(cosine.ok());
  EXPECT_EQ((*cosine)(0), 1);
  EXPECT_EQ(libm->symbol<void *>("no_such_function").status().code(), Code::unknown_name);
}

TEST(DynamicLibrary, OneThatIsCutShortIsRefusedWhereverItIsCut) {
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<const void *>(static_cast<double (*)(double)>(std::cos)), &info), 0);
  const test::TemporaryFolder folder;
  const std::filesystem::path whole = info.dli_fname, cut = folder.file("cut.so");
  const auto size = static_cast<int64_t>(std::filesystem::file_size(whole));
  std::filesystem::copy_file(whole, cut);
  for (int64_t left : {size / 2, size / 3, int64_t{3000}, int64_t{100}, int64_t{20}, int64_t{0}}) {
    std::filesystem::resize_file(cut, static_cast<uintmax_t>(left));
    EXPECT_EQ(DynamicLibrary::open(cut).status().code(), Code::io) << left;
  }
}

TEST(DynamicLibrary, KnowsItsOwnFolder) { EXPECT_TRUE(std::filesystem::is_directory(directory_of_this_library())); }

}  // namespace
}  // namespace kiln
