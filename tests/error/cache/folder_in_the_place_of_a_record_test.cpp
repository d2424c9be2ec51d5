// A folder of the name of a record: it is left alone.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FolderInThePlaceOfARecord) {
  EXPECT_EQ(compile().lookup, "MISS");
  const std::filesystem::path path = record();
  std::filesystem::remove(path);
  std::filesystem::create_directories(path / "more");
  EXPECT_EQ(compile().lookup, "MISS");
  EXPECT_TRUE(std::filesystem::is_directory(path / "more"));
}

}  // namespace refused
