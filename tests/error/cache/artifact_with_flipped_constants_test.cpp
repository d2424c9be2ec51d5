// An artifact whose constants are damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedConstants) { expect_no_artifact_when_flipped("constants"); }

}  // namespace refused
