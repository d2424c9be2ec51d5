// A sound artifact for a CPU that this one is not: the feature level is named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactForAnotherCpu) {
  compile();
  const std::string own = of_this_build("target");
  const std::string other = own == "v4" ? "v9" : "v4";  // a level of machines to come, where this has all of today's
  const std::string size("\x02\0\0\0\0\0\0\0", 8);
  File(record()).forge("components", size + own, size + other);
  File(record()).forge("contracts", size + own, size + other);
  expect_no_artifact(record().string(), "INCOMPATIBLE",
                     "the artifact is for " + other + ", this machine runs up to " + own);
}

}  // namespace refused
