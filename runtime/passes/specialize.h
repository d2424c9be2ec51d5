// A graph at sizes that are fixed: what a program that runs these alone is made of.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "runtime/graph/graph.h"

namespace kiln {

using FixedSizes = std::map<std::string, int64_t>;  // by symbol

// "batch=1,length=128", in any order, and back, sorted. Errors say what of it is wrong.
Result<FixedSizes> parse_fixed_sizes(std::string_view text);
std::string text_of(const FixedSizes &sizes);

// With the sizes in place of their symbols.
Dim at_sizes(const Dim &dim, const FixedSizes &sizes);
Shape at_sizes(const Shape &shape, const FixedSizes &sizes);

// The graph with the sizes in place of their symbols: in dims, strides and attributes, and, where operands then tell
// what symbols of a nested graph are, in there. All types are inferred anew, and the result is verified. Inputs bind
// the symbols, no node does. An error tells the node that cannot have these sizes.
//
// A dim that is 1 now may broadcast, where the graph requires that two sizes are equal: what its nodes require must be
// checked all the same (planner.h).
Result<GraphPtr> specialize(const GraphPtr &graph, const FixedSizes &sizes);

}  // namespace kiln
