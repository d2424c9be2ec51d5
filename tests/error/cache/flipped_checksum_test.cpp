// A bit of the checksum of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedChecksum) {
  EXPECT_EQ(compile().lookup, "MISS");
  File(record()).flip(56);
  expect_compiled_again("the record is damaged: header at offset 56: wrong checksum");
}

}  // namespace refused
