// A record ends within its images: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInImages) { expect_compiled_again_when_cut_in("images"); }

}  // namespace refused
