// The graphs that nodes of a graph carry as attributes: what a call calls, the branches of a cond.
#pragma once
#include <functional>
#include <string>

#include "runtime/graph/graph.h"

namespace kiln {

// Puts what `rewrite` makes of each nested graph, however deep, in its place: each graph once, whoever carries it, and
// before the graphs that carry it. `where` names one of its nodes for messages: "node 'a'", or "node 'b' of node 'a'".
// The signature of a graph must stay. `graph` itself is not rewritten; it is returned as it is when nothing changes.
using RewriteGraph = std::function<Result<GraphPtr>(const GraphPtr &nested, const std::string &where)>;
Result<GraphPtr> rewrite_nested(const GraphPtr &graph, const RewriteGraph &rewrite);

}  // namespace kiln
