// Decomposition of a whole graph into ops that are views or lower to kernel IR.
#pragma once
#include <functional>

#include "runtime/ops/op.h"

namespace kiln {

// Replaces each op that has a decomposition, and those that appear thereby, until none is left; an op for which `keep`
// (may be empty) is true stays whole. What is added inherits the annotations of the node that it replaces.
Result<GraphPtr> decompose(GraphPtr graph, const OpTable &ops, const std::function<bool(const Node &)> &keep = {});

}  // namespace kiln
