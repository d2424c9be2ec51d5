// A record ends within its constants: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInConstants) { expect_compiled_again_when_cut_in("constants"); }

}  // namespace refused
