// Ops whose attributes are graphs: which operands of a node its graphs get, and which nodes are control flow.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {

// The graphs that a node carries, by name of attribute: of a call or scan one, of cond, while and custom_function two,
// of attention up to two. Empty: it carries none.
std::vector<std::pair<std::string_view, GraphPtr>> nested_graphs(const Node &node);

// How the operands of a scan divide; the rest stay the same in all turns.
struct ScanOperands {
  uint32_t carried = 0, sequences = 0;
  bool reverse = false;
};
ScanOperands scan_operands(const AttrMap &attrs, size_t operands);

// The operand of a control node that input `input` of each of its graphs is given (of while and scan: in the first
// turn; of a sequence of a scan an element is, without dim 0).
inline uint32_t operand_of_input(const Node &node, uint32_t input) {
  return node.op->name == "cond" ? input + 1 : input;
}

// The operand that input `input` of a node's graph `attr` is, as it is and every time. Nothing: it is something else in
// each turn, or made by the node.
std::optional<uint32_t> operand_given(const Node &node, std::string_view attr, uint32_t input);
// How many turns a scan takes.
Dim turns_of(const Graph &graph, const Node &scan);
// The dim of an operand that dim `dim` of that input is.
Dim dim_of_input(const Graph &graph, const Node &node, uint32_t input, uint32_t dim);

// Whether some node of the graph, or of those that its calls stand for, tells a size as it runs.
bool resolves_sizes(const Graph &graph);

// call and custom_function: the node stands for the nodes of a graph, whose first outputs are its results.
inline bool is_call(const OpSchema &op) { return op.name == "call" || op.name == "custom_function"; }
inline bool is_call(const Node &node) { return node.op && is_call(*node.op); }
// The attribute that is this graph, and the graph, of a call.
inline std::string_view called_attr(const Node &call) { return call.op->name == "call" ? "graph" : "forward_graph"; }
inline const Graph &called_graph(const Node &call) { return *call.attrs.find(called_attr(call))->second.graph(); }
// cond, while and scan: their graphs are not inlined, a plan's steps choose among them.
inline bool is_control(const Node &node) { return node.op && (node.op->flags & op_flags::control); }

}  // namespace kiln
