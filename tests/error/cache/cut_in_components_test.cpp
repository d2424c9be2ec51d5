// A record ends within its components: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInComponents) { expect_compiled_again_when_cut_in("components"); }

}  // namespace refused
