// A sound artifact for a CPU that this build does not know.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactForAnotherCpu) {
  compile();
  const std::string own = of_this_build("target");
  std::string other = own;
  other.replace(0, 2, "v9");  // a level of machines to come
  std::string size(8, '\0');
  size[0] = static_cast<char>(own.size());
  File(record()).forge("components", size + own, size + other);
  File(record()).forge("contracts", size + own, size + other);
  expect_no_artifact(record().string(), "INCOMPATIBLE",
                     "the artifact's target: cpu '" + other +
                         "' is unknown; expected native, x86-64, v3 (avx2) or v4 (avx512), then +FEATURE and -FEATURE");
}

}  // namespace refused
