// A bit of the length of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedLength) {
  EXPECT_EQ(compile().lookup, "MISS");
  File file(record());
  const uint64_t size = file.size();
  file.flip(16);
  expect_compiled_again("the record is damaged: header at offset 16: " + std::to_string(size) + " bytes, expected " +
                        std::to_string(size ^ 0x10));
}

}  // namespace refused
