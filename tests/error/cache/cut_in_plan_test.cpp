// A record ends within its plan: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInPlan) { expect_compiled_again_when_cut_in("plan"); }

}  // namespace refused
