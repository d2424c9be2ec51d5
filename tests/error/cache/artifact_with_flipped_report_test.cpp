// An artifact whose report is damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedReport) { expect_no_artifact_when_flipped("report"); }

}  // namespace refused
