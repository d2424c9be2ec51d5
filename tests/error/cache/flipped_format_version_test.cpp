// A bit of the format version of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedFormatVersion) {
  EXPECT_EQ(compile().lookup, "MISS");
  File(record()).flip(8);
  expect_compiled_again("the record is damaged: header at offset 8: format version 24, expected 8");
}

}  // namespace refused
