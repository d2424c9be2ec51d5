#include "jit/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

#include "tests/child.h"
#include "tests/temporary_folder.h"

namespace kiln {
namespace {

TEST(UsableCores, AreThoseOfTheAffinity) {
  test::in_child([] {
    const uint32_t before = usable_cores();
    cpu_set_t set, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &set)) CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cores(), 1u);
    EXPECT_LE(before, static_cast<uint32_t>(CPU_COUNT(&set)));
  });
}

class QuotaCores : public testing::Test {
 protected:
  void write(const std::string &path, const std::string &text) const {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  const test::TemporaryFolder folder;
  const std::string root = folder.path();
};

TEST_F(QuotaCores, AreTheLeastOfTheGroupAndItsParents) {
  write("/cpu.max", "max 100000\n");
  write("/a/cpu.max", "150000 100000\n");
  write("/a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota_cores("0::/a/b\n", root), 2u) << "one and a half, rounded up";
  EXPECT_EQ(quota_cores("0::/\n", root), 0u);
  write("/cpu.max", "100000 100000\n");
  EXPECT_EQ(quota_cores("0::/\n", root), 1u) << "a container's own";
  EXPECT_EQ(quota_cores("0::/a/gone\n", root), 1u);
}

TEST_F(QuotaCores, AreReadFromVersion1) {
  write("/cpu/a/cpu.cfs_quota_us", "350000\n");
  write("/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_cores("4:memory:/a\n3:cpu,cpuacct:/a\n0::/\n", root), 4u);
  EXPECT_EQ(quota_cores("4:memory:/a\n3:cpuacct:/a\n", root), 0u);
  write("/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota_cores("1:cpu:/a\n", root), 0u);
}

TEST_F(QuotaCores, AreUnlimitedWhereNothingIsSaid) {
  for (const char *groups : {"", "nonsense", "0::", "0::/nowhere\n"})
    EXPECT_EQ(quota_cores(groups, root), 0u) << groups;
  write("/cpu.max", "much of 100000");
  EXPECT_EQ(quota_cores("0::/\n", root), 0u);
  write("/cpu.max", "100000 0");
  EXPECT_EQ(quota_cores("0::/\n", root), 0u);
}

}  // namespace
}  // namespace kiln
