// A record ends within its source: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInSource) { expect_compiled_again_when_cut_in("source"); }

}  // namespace refused
