// What view ops say of each other.
#pragma once
#include "runtime/graph/edit.h"

namespace kiln {

// Whether it is a view of its operand's own type that has each element where it was.
bool is_identity_view(const Graph &graph, const Node &node);

}  // namespace kiln
