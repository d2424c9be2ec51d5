// A marked part of a graph as a graph of its own, for hosts that run the stages of a model themselves.
#pragma once
#include <string_view>

#include "runtime/regions/region.h"

namespace kiln {

// The nodes of `graph` (not of graphs nested in it) whose annotation `key` is the text `value`, as cut_out() makes it,
// verified. unknown_name: there is no such node, with the values that there are; invalid_argument: other nodes lie
// between them (the message names a path), or the part yields nothing.
Result<Region> extract(const Graph &graph, std::string_view key, std::string_view value);

}  // namespace kiln
