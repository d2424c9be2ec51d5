// A sound record that lies where another one should.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, RecordUnderAnotherKey) {
  EXPECT_EQ(compile("reference").lookup, "MISS");
  const std::filesystem::path other = record();
  EXPECT_EQ(compile("cpu").lookup, "MISS");
  for (const std::filesystem::path &path : files(".kiln"))
    if (path != other) std::filesystem::copy_file(other, path, std::filesystem::copy_options::overwrite_existing);
  expect_compiled_again("the record is damaged: header at offset 24: the key is not the file's");
}

}  // namespace refused
