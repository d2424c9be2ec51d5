// How deep graphs are nested in graphs, for all that builds, reads and checks them.
#pragma once

namespace kiln {

inline constexpr int deepest_nesting = 32;  // below the graph itself, which is at 0

// Brackets within brackets of a text: two for each nested graph, and what stands in the innermost.
inline constexpr int deepest_brackets = 2 * deepest_nesting + 16;

}  // namespace kiln
