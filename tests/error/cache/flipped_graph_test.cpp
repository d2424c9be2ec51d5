// A bit of the graph of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedGraph) {
  EXPECT_EQ(compile("reference").lookup, "MISS");
  File file(record());
  const Section section = file.section("graph");
  file.flip(section.offset + section.size / 2);
  expect_compiled_again(
      "the record is damaged: section 'graph' at offset " + std::to_string(section.offset) + ": wrong checksum",
      "reference");
}

}  // namespace refused
