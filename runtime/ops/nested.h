// Ops whose attributes are graphs: which operands of a node its graphs get, and which nodes are control flow.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {

// The graphs that a node carries, by name of attribute: of a call one, of cond and while two. Empty: it carries none.
std::vector<std::pair<std::string_view, GraphPtr>> nested_graphs(const Node &node);

// The operand of `node` that input `input` of each of its graphs is given (of while: in the first turn).
inline uint32_t operand_of_input(const Node &node, uint32_t input) {
  return node.op->name == "cond" ? input + 1 : input;
}

// How many operands of a while change from turn to turn; they come first. Of the other nodes 0.
uint32_t carried_count(const Node &node);

// cond and while: their graphs are not inlined, a plan's steps choose among them.
inline bool is_control(const Node &node) { return node.op && (node.op->flags & op_flags::control); }

}  // namespace kiln
