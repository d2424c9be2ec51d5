// The part of a plan that follows from the graph's signature alone.
#pragma once
#include <string_view>

#include "runtime/graph/graph.h"
#include "runtime/passes/specialize.h"
#include "runtime/plan/node_names.h"
#include "runtime/plan/plan.h"

namespace kiln {

// Arguments, symbols with the place that binds each, checks (see add_checks), and a slot for each argument: inputs,
// then parameters, then outputs. An error names a symbol that no input binds.
Result<Plan> plan_of_signature(const Graph &graph, const NodeNames &names);

// Lists the inputs that are marked kiln.donate and can be used so: dense ones that no output is a view of.
void list_donated(const Graph &graph, Plan &plan);

// Adds the symbols that nodes of `graph` resolve, in their order.
void add_resolved_symbols(const Graph &graph, const NodeNames &names, Plan &plan);

// Adds what the nodes of `graph` require of sizes, unless it is there already or always true.
void add_checks(const Graph &graph, const NodeNames &names, Plan &plan);

// The same plan where sizes are fixed: in arguments and checks, and in place of their symbols. An error tells a check
// that they fail.
Status fix_sizes(const FixedSizes &sizes, Plan &plan);

// The error for a symbol whose value no input gives.
Status unbound(std::string_view symbol);

// Bytes from a tensor's first element to past its last.
Expr span_bytes(DType dtype, const Shape &dims, const Shape &strides);

}  // namespace kiln
