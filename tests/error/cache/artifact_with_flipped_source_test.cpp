// An artifact whose source is damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedSource) { expect_no_artifact_when_flipped("source"); }

}  // namespace refused
