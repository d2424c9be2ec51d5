// An artifact whose kernels are damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedKernels) { expect_no_artifact_when_flipped("kernels"); }

}  // namespace refused
