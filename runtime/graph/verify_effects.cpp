// What tokens say of the order of effects, before and after a pass.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {
namespace {

// Goes back from the node by the tokens that it takes, and by theirs where visit(node before) says so.
template <class Visit>
void go_back(const Graph &graph, const Node &from, Visit visit) {
  std::set<uint32_t> seen;
  std::vector<const Node *> open{&from};
  while (!open.empty()) {
    const Node &node = *open.back();
    open.pop_back();
    for (const ValueId value : node.inputs) {
      if (graph.type(value).dtype != DType::token || !seen.insert(value.node).second) continue;
      if (const Node &before = *graph.find(value.node); visit(before)) open.push_back(&before);
    }
  }
}

bool comes_after(const Graph &graph, const Node &node, const Node &other) {
  bool found = false;
  go_back(graph, node, [&](const Node &before) {
    found = found || &before == &other;
    return !found;
  });
  return found;
}

Status broken_at(const Node &node, std::string_view what, std::string_view other = {}) {
  return error(Code::invariant, "invariant 'effects' broken at node '", node.name, "' [", node.op->name, "]: ", what,
               other)
      .with_node(node.name);
}

}  // namespace

Status verify_same_effects(const Graph &before, const Graph &after, bool may_leave_out) {
  std::map<uint32_t, const Node *> kept;  // those of `after`, by id in `before`
  for (const Node &node : before.nodes()) {
    if (!has_effect(node)) continue;
    const Node *now = after.find(node.name);
    if (now && now->op == node.op)
      kept[node.id] = now;
    else if (!may_leave_out)
      return broken_at(node, "it has an effect, and is gone; an edit takes it out that replaces its token");
  }
  for (const auto &[id, node] : kept) {
    const Node *const now = node;
    Status status;
    go_back(before, *before.find(id), [&](const Node &earlier) {
      const auto known = kept.find(earlier.id);
      if (known == kept.end()) return true;
      if (status.ok() && !comes_after(after, *now, *known->second))
        status =
            broken_at(*now, "by their tokens it came after ", str_cat("'", earlier.name, "', and does not any more"));
      return false;
    });
    KILN_TRY(status);
  }
  return {};
}

}  // namespace kiln
