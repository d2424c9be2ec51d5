// An artifact that was not copied whole.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactThatIsCut) {
  compile();
  const std::string path = record().string();
  File file(path);
  const uint64_t whole = file.size();
  file.cut(whole - 1);
  const host::Context context = host::make_context();
  kiln_executable *executable = nullptr;
  EXPECT_REFUSED(
      host::take(kiln_executable_open(context.get(), path.data(), path.size(), nullptr, &executable)), "CORRUPT",
      path + ": header at offset 16: " + std::to_string(whole - 1) + " bytes, expected " + std::to_string(whole));
}

}  // namespace refused
