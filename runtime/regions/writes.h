// For what cuts a graph: which nodes come before one that writes an input (copy_), beside those whose values it has.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {

class ReadersOfWritten {
 public:
  explicit ReadersOfWritten(const Graph &graph);
  // The ids of the op nodes that read the input which `node` writes, or a view of it, in their order: they see what it
  // was. None, of a node that writes none. Not `node` itself.
  std::span<const uint32_t> before(const Node &node) const;

 private:
  std::map<uint32_t, std::vector<uint32_t>> readers_;  // by input
};

}  // namespace kiln
