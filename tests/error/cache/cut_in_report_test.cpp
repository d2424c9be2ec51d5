// A record ends within its report: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInReport) { expect_compiled_again_when_cut_in("report"); }

}  // namespace refused
