#include "jit/base/target.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(Target, HostRunsItsOwnLevelAndKnowsNames) {
  Target host = Target::host();
  EXPECT_TRUE(host.runs_on_host());
  EXPECT_EQ(Target::by_name("avx512")->name(), "v4");
  EXPECT_EQ(Target::by_name("v3")->lanes_f32(), 8u);
  EXPECT_EQ(Target::by_name("x86-64")->vector_bytes(), 16u);
  EXPECT_EQ(Target::by_name("native")->name(), host.name());
  EXPECT_EQ(Target::by_name("v5").status().code(), Code::unknown_name);
}

}  // namespace
}  // namespace kiln
