#include "runtime/cache/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/cache/cache.h"
#include "tests/temporary_folder.h"
#include "tests/unit/runtime/example_artifact.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CacheTrust : public testing::Test {
 protected:
  CacheTrust() {
    fs::create_directories(dir_);
    fs::permissions(root_, fs::perms(0755));
    fs::permissions(dir_, fs::perms(0700));
  }
  const test::TemporaryFolder folder_;
  const std::string root_ = folder_.path(), dir_ = root_ + "/d";
};

TEST_F(CacheTrust, AFolderOfOnesOwnIsTrustedAlsoBeforeItIsThere) {
  EXPECT_EQ(reason_to_distrust(dir_), "");
  EXPECT_EQ(reason_to_distrust(dir_ + "/none/deep"), "");
  EXPECT_EQ(reason_to_distrust("/proc/self/none"), "");
}

TEST_F(CacheTrust, AFolderThatOthersMayWriteIsNot) {
  for (const unsigned mode : {0777U, 0770U, 0702U, 01777U}) {
    fs::permissions(dir_, fs::perms(mode));
    EXPECT_EQ(reason_to_distrust(dir_), dir_ + " is writable by others") << std::oct << mode;
  }
}

TEST_F(CacheTrust, NorOneBelowAFolderThatOthersMayWriteUnlessOnlyTheirOwn) {
  fs::permissions(root_, fs::perms(0777));
  EXPECT_EQ(reason_to_distrust(dir_), root_ + " is writable by others");
  EXPECT_EQ(reason_to_distrust(dir_ + "/none"), root_ + " is writable by others");
  fs::permissions(root_, fs::perms(01777));
  EXPECT_EQ(reason_to_distrust(dir_), "");
}

TEST_F(CacheTrust, AFolderOrLinkOfAnotherUserIsNot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const std::string link = root_ + "/link";
  fs::create_symlink(dir_, link);
  EXPECT_EQ(reason_to_distrust(link), "");
  ASSERT_EQ(lchown(link.c_str(), 65534, 65534), 0);
  EXPECT_EQ(reason_to_distrust(link), link + " belongs to user 65534");
  ASSERT_EQ(chown(dir_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(reason_to_distrust(dir_), dir_ + " belongs to user 65534");
}

TEST_F(CacheTrust, ARecordThatOthersMayWriteIsRejectedAndMadeAgain) {
  Cache cache(dir_, 0);
  const Artifact a = example::add(4);
  const auto find = [&] { return cache.find(a.graph_key, a.components, example::build, "x86-64"); };
  ASSERT_TRUE(cache.publish(a).ok());
  fs::permissions(cache.list()->at(0).path, fs::perms(0666));
  const Lookup lookup = find();
  EXPECT_EQ(lookup.outcome, Outcome::reject);
  EXPECT_EQ(lookup.reason, "the record cannot be used: it is writable by others");
  EXPECT_EQ(cache.last_io_error(), lookup.reason);
  ASSERT_TRUE(cache.publish(a).ok());
  EXPECT_EQ(find().outcome, Outcome::hit);
}

TEST_F(CacheTrust, NothingIsWrittenToAFolderThatOthersMayWrite) {
  Cache cache(dir_, 0);
  ASSERT_TRUE(cache.publish(example::add(4)).ok());
  fs::permissions(dir_, fs::perms(0777));
  const std::string reason = "cache folder " + dir_ + " is not used: " + dir_ + " is writable by others";
  EXPECT_EQ(cache.refusal(), reason);
  Artifact other = example::add(4);
  other.graph_key = digest_of("other");
  EXPECT_EQ(cache.publish(other).message(), reason);
  EXPECT_EQ(cache.clear().status().message(), reason);
  EXPECT_EQ(cache.list()->size(), 1u);
}

}  // namespace
}  // namespace kiln
