// Verifying a graph that is cut out of another.
#pragma once
#include "runtime/graph/graph.h"

namespace kiln {

// As verify(), but that its inputs need not bind the symbols that are declared in it: the graph that it is part of
// does.
Status verify_part(const Graph &graph);

}  // namespace kiln
