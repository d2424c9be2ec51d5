// An artifact whose components are damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedComponents) { expect_no_artifact_when_flipped("components"); }

}  // namespace refused
