// The cache's folder is there, and its permissions forbid to write.
#include <linux/capability.h>
#include <sys/syscall.h>

#include "tests/error/cache/cache.h"

namespace refused {
namespace {

// Root may write everywhere: until it is destroyed, this thread and those that it starts may not.
class WithoutOverride {
 public:
  WithoutOverride() {
    syscall(SYS_capget, &header_, before_);
    __user_cap_data_struct without[2] = {before_[0], before_[1]};
    without[0].effective &= ~(1U << CAP_DAC_OVERRIDE);
    syscall(SYS_capset, &header_, without);
  }
  WithoutOverride(const WithoutOverride &) = delete;
  ~WithoutOverride() { syscall(SYS_capset, &header_, before_); }

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2]{};
};

}  // namespace

TEST_F(CacheCase, FolderThatIsReadOnly) {
  using std::filesystem::perms;
  std::filesystem::create_directories(folder_);
  std::filesystem::permissions(folder_, perms::owner_read | perms::owner_exec);
  const WithoutOverride as_a_user;
  const Outcome outcome = compile();
  EXPECT_EQ(outcome.lookup, "MISS");
  EXPECT_EQ(outcome.kernels_compiled, 1);
  EXPECT_EQ(outcome.close.code, KILN_IO) << outcome.close.message;
  EXPECT_NE(outcome.close.message.find("saves to the cache failed; the first: cannot open " + folder_.string()),
            std::string::npos)
      << outcome.close.message;
  EXPECT_TRUE(files("").empty());
}

}  // namespace refused
