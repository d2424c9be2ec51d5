// A record ends within its images: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInImages) {
  EXPECT_EQ(compile().lookup, "MISS");
  File file(record());
  const Section section = file.section("images");
  const uint64_t whole = file.size(), left = section.offset + section.size / 2;
  file.cut(left);
  expect_compiled_again("the record is damaged: header at offset 16: " + std::to_string(left) + " bytes, expected " +
                        std::to_string(whole));
}

}  // namespace refused
