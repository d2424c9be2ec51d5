// A bit of the section table of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedSectionTable) {
  EXPECT_EQ(compile().lookup, "MISS");
  File(record()).flip(72);
  expect_compiled_again("the record is damaged: header at offset 56: wrong checksum");
}

}  // namespace refused
