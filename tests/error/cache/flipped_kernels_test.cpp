// A bit of the kernels of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedKernels) {
  EXPECT_EQ(compile().lookup, "MISS");
  File file(record());
  const Section section = file.section("kernels");
  file.flip(section.offset + section.size / 2);
  expect_compiled_again("the record is damaged: section 'kernels' at offset " + std::to_string(section.offset) +
                        ": wrong checksum");
}

}  // namespace refused
