// The graph's text form. The schema is documented in runtime/graph/FORMAT.md.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {

// Strict: UTF-8, no duplicate or unknown members, no trailing text, bounded depth. Errors say where
// ("nodes[3].attrs.dim").
Result<GraphPtr> read_json(std::string_view text, const OpTable &ops);
// Reads back to an equal graph (equal hash_bytes). One line a node.
std::string write_json(const Graph &graph);
// What is kept beside the text of a graph that is not a host's: tensors of more than a few elements, of which the text
// has the numbers, {"apart": 3}; and what op nodes and constants are called, of which it has `mark` and the number.
struct Apart {
  std::vector<TensorPtr> tensors;
  std::string mark;                // which no other name begins with; empty: names are in the text
  std::vector<std::string> names;  // read: all; to write, none
};
// Adds tensors that are not there yet. `number_of` has the number of a node's name.
std::string write_json(const Graph &graph, Apart &apart, const std::function<size_t(const Node &)> &number_of);
Result<GraphPtr> read_json(std::string_view text, const OpTable &ops, const Apart &apart);
// The value of an attribute as a node of such a graph has it, but a graph in place of its name.
std::string write_json(const AttrValue &value);

}  // namespace kiln
