// A record of no byte.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, EmptyRecord) {
  EXPECT_EQ(compile().lookup, "MISS");
  File(record()).cut(0);
  expect_compiled_again("the record is damaged: header at offset 0: not a file of Kiln's");
}

}  // namespace refused
