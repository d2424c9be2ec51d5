// An artifact whose images are damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedImages) { expect_no_artifact_when_flipped("images"); }

}  // namespace refused
