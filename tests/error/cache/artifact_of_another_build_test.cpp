// A sound artifact that another build of Kiln wrote.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactOfAnotherBuild) {
  compile();
  const std::string path = record().string();
  const host::Context context = host::make_context();
  kiln_executable *executable = nullptr;
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_build_report(&made));
  const host::Report build(made);
  const std::string own = host::text(build, "build_id"), other(own.size(), 'f');
  File(path).forge("components", own, other);
  EXPECT_REFUSED(host::take(kiln_executable_load(context.get(), path.data(), path.size(), &executable)), "INCOMPATIBLE",
                 path + ": the artifact is of build " + other + ", this is build " + own);
}

}  // namespace refused
