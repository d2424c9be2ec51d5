#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "jit/base/dtype.h"
#include "jit/base/dynamic_library.h"
#include "jit/base/env.h"
#include "jit/base/file.h"
#include "jit/base/hash.h"
#include "jit/base/target.h"

namespace kiln {
namespace {

ByteSpan span_of(std::string_view s) { return {reinterpret_cast<const uint8_t *>(s.data()), s.size()}; }

TEST(DType, NamesAndDlpackCodesReadBack) {
  for (int number = 1; number <= dtype_count; ++number) {
    auto dtype = static_cast<DType>(number);
    const DTypeInfo &info = dtype_info(dtype);
    EXPECT_EQ(info.dtype, dtype);
    EXPECT_EQ(dtype_from_name(info.name), dtype);
    EXPECT_EQ(dtype_from_dlpack(info.dlpack_code, info.dlpack_bits), dtype);
    EXPECT_EQ(info.dlpack_bits, 8 * info.size_bytes);
  }
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
  EXPECT_EQ(dtype_from_dlpack(2, 8), std::nullopt);
}

TEST(Hash, IsBlake2bAndXxh3) {
  EXPECT_EQ(digest_of("abc").hex(), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  EXPECT_EQ(digest_of("").hex(), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(checksum_of({}), 0x2d06800538d394c2u);
}

TEST(Target, HostRunsItsOwnLevelAndKnowsNames) {
  Target host = Target::host();
  EXPECT_TRUE(host.runs_on_host());
  EXPECT_GE(host.cores, 1u);
  EXPECT_GE(host.l2_bytes, host.l1_bytes);
  EXPECT_EQ(Target::by_name("avx512")->name(), "v4");
  EXPECT_EQ(Target::by_name("v3")->lanes_f32(), 8u);
  EXPECT_EQ(Target::by_name("x86-64")->vector_bytes(), 16u);
  EXPECT_EQ(Target::by_name("native")->name(), host.name());
  EXPECT_EQ(Target::by_name("v5").status().code(), Code::unknown_name);
}

TEST(Env, TypedGettersSayWhatIsWrong) {
  unsetenv("KILN_THREADS");
  EXPECT_EQ(*env_count(Env::KILN_THREADS), std::nullopt);
  setenv("KILN_THREADS", "3", 1);
  EXPECT_EQ(*env_count(Env::KILN_THREADS), 3u);
  setenv("KILN_THREADS", "many", 1);
  EXPECT_EQ(env_count(Env::KILN_THREADS).status().message(), "KILN_THREADS is 'many'; expected a number, at least 1");
  unsetenv("KILN_THREADS");
  unsetenv("KILN_PERF_MAP");
  EXPECT_FALSE(*env_flag(Env::KILN_PERF_MAP));
  setenv("KILN_PERF_MAP", "1", 1);
  EXPECT_TRUE(*env_flag(Env::KILN_PERF_MAP));
  setenv("KILN_PERF_MAP", "yes", 1);
  EXPECT_FALSE(env_flag(Env::KILN_PERF_MAP).ok());
  unsetenv("KILN_PERF_MAP");
  EXPECT_STREQ(all_env()[static_cast<size_t>(Env::KILN_CACHE)].name, "KILN_CACHE");
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::temp_directory_path() / ("kiln_files_" + std::to_string(getpid()));
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string path(const char *name) const { return (dir_ / name).string(); }
  std::filesystem::path dir_;
};

TEST_F(Files, WriteThenReadAndMap) {
  ASSERT_TRUE(write_file(path("a"), span_of("old")).ok());
  ASSERT_TRUE(write_file(path("a"), span_of("hello")).ok());
  EXPECT_EQ(*read_file(path("a")), Bytes({'h', 'e', 'l', 'l', 'o'}));
  Result<MappedFile> map = MappedFile::open(path("a"));
  ASSERT_TRUE(map.ok());
  MappedFile moved = std::move(map).value();
  EXPECT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(moved.bytes()[4], 'o');
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1) << "temporary files remain";
}

TEST_F(Files, EmptyFilesMapToNoBytes) {
  ASSERT_TRUE(write_file(path("empty"), {}).ok());
  EXPECT_TRUE(MappedFile::open(path("empty"))->bytes().empty());
  EXPECT_TRUE(read_file(path("empty"))->empty());
}

TEST_F(Files, ErrorsNameFileAndReason) {
  EXPECT_EQ(read_file(path("none")).status().message(),
            "cannot open '" + path("none") + "': No such file or directory");
  EXPECT_EQ(MappedFile::open(dir_.string()).status().message(),
            "cannot read '" + dir_.string() + "': not a regular file");
  EXPECT_EQ(write_file(path("none/x"), {}).message(),
            "cannot create a file beside '" + path("none/x") + "': No such file or directory");
}

TEST_F(Files, FifosAreRefusedWithoutWaiting) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_file(path("fifo")).status().code(), Code::io);
}

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
