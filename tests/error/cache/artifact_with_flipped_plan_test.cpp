// An artifact whose plan is damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedPlan) {
  compile();
  const std::string path = record().string();
  File file(path);
  const Section section = file.section("plan");
  file.flip(section.offset + section.size / 2);
  const host::Context context = host::make_context();
  kiln_executable *executable = nullptr;
  EXPECT_REFUSED(host::take(kiln_executable_load(context.get(), path.data(), path.size(), &executable)), "CORRUPT",
                 path + ": section 'plan' at offset " + std::to_string(section.offset) + ": wrong checksum");
  EXPECT_EQ(executable, nullptr);
}

}  // namespace refused
