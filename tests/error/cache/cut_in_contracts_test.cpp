// A record ends within its contracts: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInContracts) { expect_compiled_again_when_cut_in("contracts"); }

}  // namespace refused
