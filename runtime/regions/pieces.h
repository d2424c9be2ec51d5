// Pieces: a graph cut across, so that each part of it is looked up and compiled by itself.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {

// Where pieces end: after nodes of these ops, and after those that are marked kiln.cut.
struct Cuts {
  std::span<const std::string> after;  // names of ops

  bool has(const Node &node) const;
  // Whether there is one in the graph, or in a graph that its calls stand for.
  bool any_in(const Graph &graph) const;
};

// The piece of each op node, in their order; pieces are numbered from 0 on, in an order in which they can run. A node's
// piece is that of its last operand, or the next one where that is a cut. What follows from parameters and constants
// alone goes with its readers, where all are in one piece, so that it can be prepared there. What writes inputs is in
// the last piece. All of it follows from the graph, not from the order in which its nodes stand.
std::vector<uint32_t> pieces_of(const Graph &graph, const Cuts &cuts);

}  // namespace kiln
