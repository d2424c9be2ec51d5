#include "jit/base/file_digests.h"

#include <gtest/gtest.h>

#include <fstream>

#include "jit/base/hasher.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace kiln {
namespace {

TEST(FileDigests, AreOfTheContent) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("a");
  std::ofstream(path) << "some text";
  FileDigests files;
  const auto known = files.of(path);
  ASSERT_TRUE(known.ok()) << known.status().message();
  ASSERT_TRUE(known->has_value());
  EXPECT_EQ((*known)->digest, digest_of("some text"));
  EXPECT_EQ((*known)->stamp, FileStamp::of(path));
  const auto gone = files.of(folder.file("b"));
  ASSERT_TRUE(gone.ok());
  EXPECT_FALSE(gone->has_value());
  EXPECT_EQ(files.of(folder.path()).status().code(), Code::io);
}

TEST(FileDigests, ReadAFileThatHasJustChangedEachTimeForItsStampMayStay) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("a");
  std::ofstream(path) << "one";
  FileDigests files;
  const auto one = files.of(path);
  std::ofstream(path) << "two";
  const auto two = files.of(path);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ((*one)->digest, digest_of("one"));
  EXPECT_EQ((*two)->digest, digest_of("two"));
  EXPECT_FALSE((*two)->is_settled);
  EXPECT_EQ(files.files_read(), 2u);
}

TEST(FileDigests, ReadWhatTheSystemMakesUpEachTime) {
  FileDigests files;
  for (int i = 0; i < 2; ++i) {
    const auto known = files.of("/proc/self/stat");
    ASSERT_TRUE(known.ok() && known->has_value()) << known.status().message();
    EXPECT_FALSE((*known)->is_settled);
  }
  EXPECT_EQ(files.files_read(), 2u);
}

TEST(FileDigests, ReadAnOldFileOnceAndNotWhereItsStampWasTold) {
  const std::string path = test::source_dir + "/tests/unit/README.md";  // written long ago
  FileDigests files, others;
  const auto first = files.of(path), second = files.of(path);
  ASSERT_TRUE(first.ok() && first->has_value()) << first.status().message();
  ASSERT_TRUE((*first)->is_settled);
  EXPECT_EQ((*second)->digest, (*first)->digest);
  EXPECT_EQ(files.files_read(), 1u);
  others.add((*first)->stamp, (*first)->digest);
  const auto third = others.of(path);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ((*third)->digest, (*first)->digest);
  EXPECT_EQ(others.files_read(), 0u);
}

TEST(Hasher, GivesTheDigestOfAllParts) {
  Hasher hasher;
  const Bytes a = {1, 2, 3}, b = {4};
  hasher.add(a);
  hasher.add(b);
  EXPECT_EQ(hasher.finish(), digest_of(Bytes{1, 2, 3, 4}));
}

}  // namespace
}  // namespace kiln
