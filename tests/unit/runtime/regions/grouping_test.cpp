#include "runtime/regions/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace kiln {
namespace {

using Uses = std::vector<std::vector<uint32_t>>;
using Colors = std::vector<uint32_t>;
constexpr uint32_t none = 0, a = 1, b = 2, c = 3;

Grouping group(const Uses &uses, const Colors &colors) {
  Lists lists;
  for (const std::vector<uint32_t> &used : uses) lists.add(used);
  return kiln::group(lists, colors);
}

size_t groups_of(const Uses &uses, const Colors &colors, uint32_t color) {
  const Grouping grouping = group(uses, colors);
  std::set<uint32_t> found;
  for (size_t node = 0; node < uses.size(); ++node)
    if (colors[node] == color) found.insert(grouping.group_of[node]);
  return found.size();
}

Uses chain(size_t length) {
  Uses uses(length);
  for (uint32_t node = 1; node < length; ++node) uses[node] = {node - 1};
  return uses;
}

TEST(Grouping, AGapOnTheWaySplits) {
  EXPECT_EQ(groups_of(chain(5), {a, a, none, a, a}, a), 2u);
  EXPECT_EQ(groups_of(chain(5), {a, none, a, none, a}, a), 3u);
  EXPECT_EQ(groups_of(chain(5), {none, none, none, none, none}, a), 0u);
  EXPECT_EQ(groups_of(chain(5), {a, a, b, a, a}, a), 2u);
}

TEST(Grouping, BranchesAroundAGapGoTogether) {
  // x, then three branches that meet.
  const Uses uses = {{}, {0}, {0}, {0}, {1, 2, 3}};
  EXPECT_EQ(groups_of(uses, {none, a, none, a, none}, a), 1u);
  EXPECT_EQ(groups_of(uses, {none, a, none, b, none}, a), 1u);
  EXPECT_EQ(groups_of(uses, {none, a, none, b, none}, b), 1u);
}

TEST(Grouping, AnUnrelatedGapBetweenSplitsNothing) {
  // 0 -> 3, and 2, which comes from elsewhere, -> 3.
  EXPECT_EQ(groups_of({{}, {}, {1}, {0, 2}}, {a, none, none, a}, a), 1u);
}

TEST(Grouping, MergesOfMergesAreOneGroup) {
  // Pairs of a, each across a gap that the next pair's first comes after.
  Uses uses;
  Colors colors;
  for (uint32_t i = 0; i < 20; ++i) {
    uses.push_back({});
    uses.push_back({});
    colors.insert(colors.end(), {a, none});
    uses.push_back(i ? std::vector<uint32_t>{3 * i - 1, 3 * i + 1} : std::vector<uint32_t>{1});
    colors.push_back(a);
  }
  EXPECT_EQ(groups_of(uses, colors, a), 1u);
}

TEST(Grouping, TwoColorsThatComeAfterEachOtherSplitOne) {
  const Uses uses = {{}, {0}, {}, {2}};  // a1 -> b1, b2 -> a2
  const Colors colors = {a, b, b, a};
  EXPECT_EQ(groups_of(uses, colors, a) + groups_of(uses, colors, b), 3u);
  const Uses three = {{}, {0}, {}, {2}, {}, {4}};  // a -> b, b -> c, c -> a
  const Colors of_three = {a, b, b, c, c, a};
  EXPECT_EQ(groups_of(three, of_three, a) + groups_of(three, of_three, b) + groups_of(three, of_three, c), 4u);
}

// ---- random graphs

struct Random {
  Uses uses;
  Colors colors;
};
Random random_graph(std::mt19937_64 &random, uint32_t nodes, uint32_t colors) {
  Random graph;
  for (uint32_t node = 0; node < nodes; ++node) {
    std::set<uint32_t> used;
    for (uint32_t k = 0; node > 0 && k < random() % 3; ++k) used.insert(static_cast<uint32_t>(random() % node));
    graph.uses.emplace_back(used.begin(), used.end());
    graph.colors.push_back(static_cast<uint32_t>(random() % (colors + 1)));
  }
  return graph;
}

// Whether the groups, of which two may be taken as one, have no cycle.
bool is_acyclic(const Uses &uses, const Grouping &grouping, uint32_t one = 0, uint32_t other = 0) {
  const auto of = [&](uint32_t node) { return grouping.group_of[node] == other ? one : grouping.group_of[node]; };
  std::vector<std::set<uint32_t>> after(grouping.count);
  for (uint32_t node = 0; node < uses.size(); ++node)
    for (const uint32_t used : uses[node])
      if (of(used) != of(node)) after[of(node)].insert(of(used));
  std::vector<uint32_t> state(grouping.count);
  const std::function<bool(uint32_t)> visit = [&](uint32_t group) {
    if (state[group]) return state[group] == 2;
    state[group] = 1;
    for (const uint32_t before : after[group])
      if (!visit(before)) return false;
    state[group] = 2;
    return true;
  };
  for (uint32_t group = 0; group < grouping.count; ++group)
    if (!visit(group)) return false;
  return true;
}

TEST(Grouping, OfRandomGraphsIsAcyclicMaximalAndInOrder) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    const uint32_t colors = 1 + static_cast<uint32_t>(random() % 6);
    const Random graph = random_graph(random, 2 + static_cast<uint32_t>(random() % 18), colors);
    const Grouping grouping = group(graph.uses, graph.colors);
    std::vector<uint32_t> color(grouping.count), size(grouping.count);
    for (uint32_t node = 0; node < graph.uses.size(); ++node) {
      const uint32_t group = grouping.group_of[node];
      ASSERT_LT(group, grouping.count);
      if (size[group]++) {
        ASSERT_EQ(color[group], graph.colors[node]) << "two colors in one group";
      }
      color[group] = graph.colors[node];
      for (const uint32_t used : graph.uses[node]) ASSERT_LE(grouping.group_of[used], group) << "runs too early";
    }
    ASSERT_TRUE(is_acyclic(graph.uses, grouping));
    for (uint32_t one = 0; one < grouping.count; ++one) {
      ASSERT_GT(size[one], 0u);
      if (color[one] == none) {
        ASSERT_EQ(size[one], 1u);
        continue;
      }
      for (uint32_t other = one + 1; other < grouping.count; ++other)
        if (color[one] == color[other]) {
          ASSERT_FALSE(is_acyclic(graph.uses, grouping, one, other)) << "round " << round;
        }
    }
  }
}

TEST(Grouping, AGroupThatMergedIsNoReasonToLieDeeper) {
  // Of a, then b, two groups become one, around c's and d's two.
  const Uses uses = {{}, {}, {1}, {2}, {3}, {1}, {4, 5}, {6}, {6}, {7}};
  const Colors colors = {3, 4, 1, none, 1, 2, 1, 2, 3, 4};
  EXPECT_EQ(groups_of(uses, colors, 3), 1u);
}

TEST(Grouping, DoesNotDependOnTheOrderOfNodes) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    const Random graph = random_graph(random, 20, 3);
    // Another order in which each node comes after what it uses.
    std::vector<uint32_t> place(20), order;
    std::vector<bool> done(20);
    while (order.size() < 20) {
      const auto node = static_cast<uint32_t>(random() % 20);
      const bool can = std::ranges::all_of(graph.uses[node], [&](uint32_t used) { return done[used]; });
      if (done[node] || !can) continue;
      done[node] = true;
      place[node] = static_cast<uint32_t>(order.size());
      order.push_back(node);
    }
    Random other;
    for (const uint32_t node : order) {
      std::vector<uint32_t> used;
      for (const uint32_t u : graph.uses[node]) used.push_back(place[u]);
      other.uses.push_back(std::move(used));
      other.colors.push_back(graph.colors[node]);
    }
    const Grouping one = group(graph.uses, graph.colors), two = group(other.uses, other.colors);
    ASSERT_EQ(one.count, two.count);
    std::map<uint32_t, uint32_t> same;
    for (uint32_t node = 0; node < 20; ++node) {
      const auto [at, fresh] = same.emplace(one.group_of[node], two.group_of[place[node]]);
      ASSERT_EQ(at->second, two.group_of[place[node]]) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace kiln
