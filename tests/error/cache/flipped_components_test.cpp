// A bit of the components of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedComponents) {
  EXPECT_EQ(compile().lookup, "MISS");
  File file(record());
  const Section section = file.section("components");
  file.flip(section.offset + section.size / 2);
  expect_compiled_again("the record is damaged: section 'components' at offset " + std::to_string(section.offset) +
                        ": wrong checksum");
}

}  // namespace refused
