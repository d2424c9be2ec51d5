// The names in a plan's messages. Names of nodes are no part of the key, so one plan serves graphs that name theirs
// differently: it says where a node is in the graph that the key was made of, and has the names of whichever graph it
// was last given.
#pragma once
#include "runtime/graph/graph.h"
#include "runtime/plan/plan.h"

namespace kiln {

// Where the node of that name is in `keyed`, or in the graph of a call in it: inlining names it "call.node". No path
// when it is in neither: passes made it, and what they call it may come from a name that another graph does not have.
Plan::NodeRef find_node(const Graph &keyed, std::string_view name);

// Puts the names of `keyed` into all messages. It has the key that the plan was made for.
void name_nodes(const Graph &keyed, Plan &plan);

}  // namespace kiln
