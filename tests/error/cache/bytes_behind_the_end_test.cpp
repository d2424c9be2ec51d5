// A record is longer than it says.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, BytesBehindTheEnd) {
  EXPECT_EQ(compile().lookup, "MISS");
  File file(record());
  const uint64_t size = file.size();
  file.cut(size + 3);
  expect_compiled_again("the record is damaged: header at offset 16: " + std::to_string(size + 3) +
                        " bytes, expected " + std::to_string(size));
}

}  // namespace refused
