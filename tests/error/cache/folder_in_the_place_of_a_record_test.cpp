// A folder of the name of a record: it is told of and put aside whole, and the record is made again.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FolderInThePlaceOfARecord) {
  EXPECT_EQ(compile().lookup, "MISS");
  const std::filesystem::path path = record();
  std::filesystem::remove(path);
  std::filesystem::create_directories(path);
  std::ofstream(path / "more.txt") << "not ours";
  expect_compiled_again("a folder is in the record's place", "cpu", 0);
  EXPECT_EQ(files(".txt").size(), 1u);
}

}  // namespace refused
