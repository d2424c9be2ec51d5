// An artifact whose contracts are damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedContracts) { expect_no_artifact_when_flipped("contracts"); }

}  // namespace refused
