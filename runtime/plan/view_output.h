// Outputs that are views of inputs: nothing makes them, a plan says where they lie.
#pragma once
#include <cstddef>

#include "runtime/graph/graph.h"
#include "runtime/plan/plan.h"

namespace kiln {

// Of output number `output`, whose layout is a view: which elements of which input it is. invalid_argument: the views
// that lead there are together no strides.
Result<Plan::Presented> present_view(const Graph &graph, size_t output);

// The graph without such outputs and what they alone use: what is compiled.
Result<GraphPtr> without_views(const GraphPtr &graph);

}  // namespace kiln
