// A disk on which no more than 512 bytes of a file have room: records are not saved, and nothing half-written is left.
#include <sys/resource.h>

#include "tests/error/cache/cache.h"

namespace refused {
namespace {

// The kernel's limit on the size of files stands for a full disk: writing fails after so many bytes.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk &) = delete;
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_F(CacheCase, FullDisk) {
  const FullDisk disk(512);
  const Outcome outcome = compile();
  EXPECT_EQ(outcome.lookup, "MISS");
  EXPECT_EQ(outcome.close.code, KILN_IO) << outcome.close.message;
  EXPECT_NE(outcome.close.message.find("saves to the cache failed; the first: cannot write " + folder_.string()),
            std::string::npos)
      << outcome.close.message;
  EXPECT_TRUE(files(".kiln").empty());
  for (const auto &file : std::filesystem::recursive_directory_iterator(folder_))
    EXPECT_FALSE(file.path().filename().string().starts_with(".tmp-")) << file.path();
}

}  // namespace refused
