// A plugin's library of which only the first part is there, as after a copy that broke off.
#include <unistd.h>

#include "tests/error/expect.h"

namespace refused {

TEST(CutPlugin, IsNamed) {
  const std::filesystem::path whole = std::filesystem::path(kiln::test::binary_dir) / "error_plugins" / "throws.so";
  const std::filesystem::path cut = ::testing::TempDir() + "cut_" + std::to_string(getpid()) + ".so";
  std::filesystem::copy_file(whole, cut, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(cut, 4000);
  const host::Context context = host::make_context();
  const std::string path = cut.string();
  const host::Error error = host::take(kiln_plugin_load(context.get(), path.data(), path.size(), nullptr));
  EXPECT_EQ(name_of(error.code), "IO");
  EXPECT_NE(error.message.find(path + "': cut short: it has 4000 bytes, and a segment ends at "), std::string::npos)
      << error.message;
  std::filesystem::remove(cut);
}

}  // namespace refused
