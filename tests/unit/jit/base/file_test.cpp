#include "jit/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/temporary_folder.h"

namespace kiln {
namespace {

ByteSpan span_of(std::string_view s) { return {reinterpret_cast<const uint8_t *>(s.data()), s.size()}; }

class Files : public testing::Test {
 protected:
  std::string path(const char *name) const { return (dir_ / name).string(); }
  const test::TemporaryFolder folder_;
  const std::filesystem::path dir_ = folder_.path();
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

TEST_F(Files, WritingGoesWhereALinkLeads) {
  std::filesystem::create_directory(path("far"));
  ASSERT_TRUE(write_file(path("far/file"), span_of("old")).ok());
  std::filesystem::create_symlink("far/file", path("link"));
  ASSERT_TRUE(write_file(path("link"), span_of("new")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(*read_file(path("far/file")), Bytes({'n', 'e', 'w'}));

  std::filesystem::create_symlink("far/fresh", path("dangling"));
  ASSERT_TRUE(write_file(path("dangling"), span_of("there")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path("dangling")));
  EXPECT_EQ(read_file(path("far/fresh"))->size(), 5u);
}

TEST_F(Files, WritingToAFifoReachesItsReader) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { std::getline(std::ifstream(path("fifo")), read); });
  EXPECT_TRUE(write_file(path("fifo"), span_of("through")).ok());
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(path("fifo")));
}

TEST_F(Files, AFolderIsNotReplaced) {
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(write_file(path("folder"), span_of("x")).message(),
            "cannot rename a file to '" + path("folder") + "': Is a directory");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1) << "temporary files remain";
}

TEST_F(Files, FifosAreRefusedWithoutWaiting) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_file(path("fifo")).status().code(), Code::io);
}

}  // namespace
}  // namespace kiln
