// A plugin's library of which only the first part is there, as after a copy that broke off.
#include "tests/error/expect.h"
#include "tests/temporary_folder.h"

namespace refused {

TEST(CutPlugin, IsNamed) {
  const std::filesystem::path whole = std::filesystem::path(kiln::test::binary_dir) / "error_plugins" / "throws.so";
  const kiln::test::TemporaryFolder folder;
  const std::filesystem::path cut = folder.file("cut.so");
  std::filesystem::copy_file(whole, cut);
  std::filesystem::resize_file(cut, 4000);
  const host::Context context = host::make_context();
  const std::string path = cut.string();
  const host::Error error = host::take(kiln_plugin_load(context.get(), path.data(), path.size(), nullptr));
  EXPECT_EQ(name_of(error.code), "IO");
  EXPECT_NE(error.message.find(path + "': cut short: it has 4000 bytes, and a segment ends at "), std::string::npos)
      << error.message;
}

}  // namespace refused
