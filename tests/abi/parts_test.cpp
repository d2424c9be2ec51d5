// The planner of regions, for a graph that only the host knows.
#include "host.h"

namespace {

using Uses = std::vector<std::vector<uint32_t>>;

struct Parts {
  host::Error error;
  std::vector<uint32_t> of;
  uint32_t count = 0;
};
Parts plan(const std::vector<uint32_t> &colors, const Uses &uses) {
  std::vector<uint64_t> begins = {0};
  std::vector<uint32_t> all;
  for (const std::vector<uint32_t> &of_node : uses) {
    all.insert(all.end(), of_node.begin(), of_node.end());
    begins.push_back(all.size());
  }
  Parts made{.error = {}, .of = std::vector<uint32_t>(colors.size())};
  made.error =
      host::take(kiln_parts_plan(colors.size(), colors.data(), begins.data(), all.data(), made.of.data(), &made.count));
  return made;
}
using Numbers = std::vector<uint32_t>;

TEST(PlanParts, NodesOfOneColorAreOnePartUnlessAnotherStandsBetween) {
  // a; b after a; c, of no color, after a; d after b and c
  const Parts through = plan({1, 1, 0, 1}, {{}, {0}, {0}, {1, 2}});
  ASSERT_EQ(through.error, host::Error());
  EXPECT_EQ(through.of, (Numbers{0, 0, 1, 2}));
  EXPECT_EQ(through.count, 3u);
  const Parts aside = plan({1, 1, 0, 1}, {{}, {0}, {0}, {1}});
  EXPECT_EQ(aside.of, (Numbers{0, 0, 1, 0}));
  EXPECT_EQ(aside.count, 2u);
}

TEST(PlanParts, ColorsTakeTurnsAsRarelyAsCanBe) {
  const Parts two = plan({1, 2, 1, 2}, {{}, {}, {}, {}});
  EXPECT_EQ(two.of, (Numbers{0, 1, 0, 1}));
  const Parts crossed = plan({1, 2, 2, 1}, {{}, {}, {0}, {1}});  // 2 waits for the one, 1 for the other
  EXPECT_EQ(crossed.count, 3u);
}

TEST(PlanParts, ThereMayBeNoNodes) {
  const Parts none = plan({}, {});
  EXPECT_EQ(none.error, host::Error());
  EXPECT_EQ(none.count, 0u);
}

TEST(PlanParts, WhatIsNoGraphIsRefusedWithItsPlace) {
  EXPECT_EQ(plan({1, 1}, {{1}, {}}).error.message,
            "kiln_parts_plan: node 0 comes after node 1, which is not before it");
  EXPECT_EQ(plan({1}, {{0}}).error.message, "kiln_parts_plan: node 0 comes after node 0, which is not before it");
  EXPECT_EQ(plan({1, 7}, {{}, {}}).error.message, "kiln_parts_plan: colors[1] is 7, of 2 nodes");
  const std::vector<uint32_t> colors = {1, 1}, uses = {0};
  std::vector<uint32_t> parts(2);
  uint32_t count = 0;
  const auto told = [&](std::vector<uint64_t> begins) {
    return host::take(kiln_parts_plan(2, colors.data(), begins.data(), uses.data(), parts.data(), &count)).message;
  };
  EXPECT_EQ(told({1, 1, 1}), "kiln_parts_plan: use_begins[0] is 1, expected 0");
  EXPECT_EQ(told({0, 1, 0}), "kiln_parts_plan: use_begins[2] is 0, below the one before it");
  EXPECT_EQ(host::take(kiln_parts_plan(2, nullptr, nullptr, nullptr, nullptr, nullptr)).message,
            "kiln_parts_plan: colors is NULL, its count is 2");
}

}  // namespace
