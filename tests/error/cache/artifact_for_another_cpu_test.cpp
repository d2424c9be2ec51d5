// A sound artifact for a CPU that this one is not: the feature level is named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactForAnotherCpu) {
  compile();
  const std::string path = record().string();
  const host::Context context = host::make_context();
  kiln_executable *executable = nullptr;
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_build_report(&made));
  const host::Report build(made);
  const std::string own = host::text(build, "target");
  const std::string other = own == "v4" ? "v9" : "v4";  // a level of machines to come, where this has all of today's
  const std::string size("\x02\0\0\0\0\0\0\0", 8);
  File(path).forge("components", size + own, size + other);
  EXPECT_REFUSED(host::take(kiln_executable_load(context.get(), path.data(), path.size(), &executable)), "INCOMPATIBLE",
                 path + ": the artifact is for " + other + ", this machine runs up to " + own);
}

}  // namespace refused
