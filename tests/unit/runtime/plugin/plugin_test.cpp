#include "runtime/plugin/plugin.h"

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <utility>

#include "jit/base/file.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace {

// What happens between this thread's next read of a file and all that comes after it.
thread_local std::function<void()> after_next_read;

}  // namespace

// What the program's calls of pread become (see tests/CMakeLists.txt).
extern "C" {
ssize_t __real_pread(int file, void *bytes, size_t size, off_t at);
ssize_t __wrap_pread(int file, void *bytes, size_t size, off_t at) {
  const ssize_t got = __real_pread(file, bytes, size, at);
  if (const auto change = std::exchange(after_next_read, nullptr)) change();
  return got;
}
}

namespace kiln {
namespace {

std::string build_of(const char *name) { return test::binary_dir + "/test_plugins/" + name; }

TEST(OpenPlugin, DigestsTheBytesThatItReadAndNotWhatTheFileHoldsSince) {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  const std::string path = folder.file("plugin.so"), before = build_of("replaced_abs.so");
  fs::copy_file(before, path);
  bool changed = false;
  after_next_read = [&] {
    changed = fs::copy_file(build_of("replaced_relu.so"), path, fs::copy_options::overwrite_existing);  // in place
  };
  const Result<PluginLibrary> plugin = open_plugin(path, 0);
  ASSERT_TRUE(plugin.ok()) << plugin.status().message();
  EXPECT_TRUE(changed);
  EXPECT_EQ(plugin->digest, digest_of(*read_file(before)));
}

}  // namespace
}  // namespace kiln
