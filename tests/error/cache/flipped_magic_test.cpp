// A bit of the magic of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedMagic) {
  EXPECT_EQ(compile().lookup, "MISS");
  File(record()).flip(0);
  expect_compiled_again("the record is damaged: header at offset 0: not a file of Kiln's");
}

}  // namespace refused
