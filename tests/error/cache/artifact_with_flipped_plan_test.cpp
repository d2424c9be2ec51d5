// An artifact whose plan is damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedPlan) { expect_no_artifact_when_flipped("plan"); }

}  // namespace refused
