// A record ends within its graph: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInGraph) { expect_compiled_again_when_cut_in("graph", "reference"); }

}  // namespace refused
