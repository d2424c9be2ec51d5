// The graph's text form. The schema is documented in runtime/graph/FORMAT.md.
#pragma once
#include <string>
#include <string_view>

#include "runtime/graph/graph.h"

namespace kiln {

// Strict: UTF-8, no duplicate or unknown members, no trailing text, bounded depth. Errors say where
// ("nodes[3].attrs.dim").
Result<GraphPtr> read_json(std::string_view text, const OpTable &ops);
// Reads back to an equal graph (equal hash_bytes). One line a node.
std::string write_json(const Graph &graph);
// The value of an attribute as a node of such a graph has it, but a graph in place of its name.
std::string write_json(const AttrValue &value);

}  // namespace kiln
