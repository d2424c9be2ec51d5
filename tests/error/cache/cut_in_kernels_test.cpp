// A record ends within its kernels: its writer died, or the disk was full.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, CutInKernels) { expect_compiled_again_when_cut_in("kernels"); }

}  // namespace refused
