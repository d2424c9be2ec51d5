// A graph where an artifact is wanted, a file that is not there, and a folder.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, ArtifactThatIsNone) {
  std::filesystem::create_directories(folder_);
  const std::string json = (folder_ / "graph.json").string(), absent = (folder_ / "absent").string();
  std::ofstream(json) << graph_json;
  const host::Context context = host::make_context();
  kiln_executable *executable = nullptr;
  EXPECT_REFUSED(host::take(kiln_executable_open(context.get(), json.data(), json.size(), nullptr, &executable)),
                 "CORRUPT", json + ": header at offset 0: not a file of Kiln's");
  EXPECT_REFUSED(host::take(kiln_executable_open(context.get(), absent.data(), absent.size(), nullptr, &executable)),
                 "IO", "cannot open '" + absent + "': No such file or directory");
  EXPECT_REFUSED(
      host::take(kiln_executable_open(context.get(), folder_.c_str(), folder_.string().size(), nullptr, &executable)),
      "IO", folder_.string() + ": member 'artifact.json' is missing");
}

}  // namespace refused
