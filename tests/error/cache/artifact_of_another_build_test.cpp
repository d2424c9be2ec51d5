// A sound artifact that another build of Kiln wrote.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactOfAnotherBuild) {
  compile();
  const std::string own = of_this_build("build_id"), other(own.size(), 'f');
  File(record()).forge("components", own, other);
  expect_no_artifact(record().string(), "INCOMPATIBLE", "the artifact is of build " + other + ", this is build " + own);
}

}  // namespace refused
