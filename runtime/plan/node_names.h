// The names in a plan's messages. Names of nodes are no part of the key, so one plan serves graphs that name theirs
// differently: it says where a node is in the graph that the key was made of, and has the names of whichever graph it
// was last given.
#pragma once
#include <span>
#include <string>

#include "runtime/graph/graph.h"
#include "runtime/plan/plan.h"

namespace kiln {

// Where nodes are in `keyed` or in graphs that its nodes carry: inlining names them "call.node", nodes of a cond are
// "cond.then_graph.node".
struct NodeNames {
  const Graph &keyed;
  std::string prefix;  // that the names which are asked for lack: "cond.then_graph."
  // Set: names are asked for as op nodes of `twin`, or what they are made of, are called, which in `whole` are these
  // nodes (ids), in their order.
  const Graph *twin = nullptr, *whole = nullptr;
  std::span<const uint32_t> own = {};
  // As `keyed` may have it, with the prefix.
  std::string full(std::string_view name) const;
  // What a decomposition made, "y.gather", is found as y. No path when it is nowhere: passes made it, and what they
  // call it may come from a name that another graph does not have.
  Plan::NodeRef find(std::string_view name) const;
  // What a kernel's part comes from: of the keyed graph, or else of `graph`, before composite ops were taken apart.
  Plan::Origin origin(std::string_view name, std::string_view made, const Graph &graph) const;
  // The op of a node that find() found; `made` when that has no path.
  std::string op(const Plan::NodeRef &node, std::string_view made) const;
};

// Puts the names of `keyed` into all messages. It has the key that the plan was made for.
void name_nodes(const Graph &keyed, Plan &plan);
// The same for nodes that are called by their own names, without those that carry them.
void name_nodes(const Graph &keyed, std::vector<Plan::NodeRef> &nodes);

}  // namespace kiln
