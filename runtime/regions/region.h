// Regions: the parts that a graph is cut into, each compiled or run as a whole.
#pragma once
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {

struct Region {
  // code: a graph that the backend compiles as a whole. control: one node, whose graphs are plans of their own.
  enum class Kind : uint8_t { code, control };
  Kind kind = Kind::code;
  std::string backend = {};
  GraphPtr graph = {};  // code: flat; its inputs, parameters and outputs are what crosses the region's border
  uint32_t node = 0;    // control: its id in the whole graph
  // The values of the whole graph that the region's are: of code in the order of its graph's signature, of a control
  // node its operands and its results. What a region yields is dense.
  std::vector<ValueId> inputs = {}, parameters = {}, outputs = {};
};

// The regions of `graph`, whose calls are inlined, in an order in which they can run. All but control flow is compiled
// for `backend`: the whole graph is one region where there is none, else what lies between control nodes. Arguments and
// constants that are outputs, or that a control node needs dense, are outputs of the first region.
Result<std::vector<Region>> partition(const GraphPtr &graph, const std::string &backend);

}  // namespace kiln
