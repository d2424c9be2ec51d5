// An artifact whose report is damaged: the section and its place are named.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactWithFlippedReport) {
  compile();
  const std::string path = record().string();
  File file(path);
  const Section section = file.section("report");
  file.flip(section.offset + section.size / 2);
  const host::Context context = host::make_context();
  kiln_executable *executable = nullptr;
  EXPECT_REFUSED(host::take(kiln_executable_load(context.get(), path.data(), path.size(), &executable)), "CORRUPT",
                 path + ": section 'report' at offset " + std::to_string(section.offset) + ": wrong checksum");
  EXPECT_EQ(executable, nullptr);
}

}  // namespace refused
