// The cache's folder would lie below a regular file: not even root can make it.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FolderThatCannotBeMade) {
  std::filesystem::create_directories(folder_);
  const std::filesystem::path file = folder_ / "file";
  std::ofstream(file) << "in the way";
  const Outcome outcome = compile_in((file / "cache").string());
  EXPECT_EQ(outcome.lookup, "MISS");
  EXPECT_EQ(outcome.kernels_compiled, 1);
  EXPECT_REFUSED(
      outcome.close, "IO",
      "2 saves to the cache failed; the first: cannot make folder " + file.string() + "/cache: Not a directory");
}

}  // namespace refused
