// A bit of the kernels of a record is another.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FlippedKernels) { expect_compiled_again_when_flipped("kernels"); }

}  // namespace refused
