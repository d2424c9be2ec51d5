#include "runtime/plugin/file_digests.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace kiln {
namespace {

class FileDigestsTest : public testing::Test {
 protected:
  ~FileDigestsTest() override { std::filesystem::remove(path); }
  void write(std::string_view content) { std::ofstream(path, std::ios::binary | std::ios::trunc) << content; }
  const std::string path = testing::TempDir() + "kiln_file_digests_test_" + std::to_string(::getpid());
  FileDigests digests;
};

TEST_F(FileDigestsTest, IsTheContents) {
  write("one");
  EXPECT_EQ(*digests.of(path), digest_of("one"));
  EXPECT_EQ(*digests.of(path), digest_of("one"));
}

TEST_F(FileDigestsTest, AChangedFileIsReadAgain) {
  write("one");
  (void)digests.of(path);
  write("longer");
  EXPECT_EQ(*digests.of(path), digest_of("longer"));
  // The same size: the times tell.
  write("sooner");
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_EQ(*digests.of(path), digest_of("sooner"));
}

TEST_F(FileDigestsTest, AMissingFileIsNamed) {
  const Result<Digest> digest = digests.of(path);
  ASSERT_FALSE(digest.ok());
  EXPECT_EQ(digest.status().code(), Code::io);
  EXPECT_NE(digest.status().message().find(path), std::string::npos);
}

}  // namespace
}  // namespace kiln
