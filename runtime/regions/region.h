// Regions: the parts of a graph that one backend compiles as a whole.
#pragma once
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {

struct Region {
  std::string backend;
  GraphPtr graph;  // its inputs, parameters and outputs are what crosses the region's border
};

// Every mode ends here: the regions of `graph`, in an order in which they can run. The only mode so far compiles
// everything: one region, the whole graph, for `backend`.
Result<std::vector<Region>> partition(GraphPtr graph, const std::string &backend);

}  // namespace kiln
