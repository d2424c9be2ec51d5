// The cache's folder cannot be written, but read: below /proc nobody makes a file.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FolderThatCannotBeWritten) {
  const Outcome outcome = compile_in("/proc/self/kiln");
  EXPECT_EQ(outcome.lookup, "MISS");
  EXPECT_REFUSED(
      outcome.close, "IO",
      "2 saves to the cache failed; the first: cannot make folder /proc/self/kiln: No such file or directory");
}

}  // namespace refused
