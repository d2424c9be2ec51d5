// A kernel that is kept for other graphs is damaged: it is compiled again.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedKernel) {
  EXPECT_EQ(compile().lookup, "MISS");
  std::filesystem::remove(record());
  EXPECT_EQ(compile().kernels_from_cache, 1);
  std::filesystem::remove(record());
  ASSERT_EQ(files(".kimg").size(), 1u);
  File file(files(".kimg").front());
  file.flip(file.size() - 5);
  const Outcome again = compile();
  EXPECT_EQ(again.kernels_from_cache, 0);
  EXPECT_EQ(again.kernels_compiled, 1);
  EXPECT_EQ(files(".bad").size(), 1u);
}

}  // namespace refused
