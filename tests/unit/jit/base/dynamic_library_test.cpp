#include "jit/base/dynamic_library.h"

#include <gtest/gtest.h>

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

TEST(DynamicLibrary, KnowsItsOwnFolder) { EXPECT_TRUE(std::filesystem::is_directory(directory_of_this_library())); }

}  // namespace
}  // namespace kiln
