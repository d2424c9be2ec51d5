#include "runtime/plan/node_names.h"

namespace kiln {
namespace {

// The graph that a call runs; null: the node is none.
const Graph *called_graph(const Node &node) {
  for (const auto &[name, value] : node.attrs)
    if (const auto *graphs = std::get_if<std::vector<GraphPtr>>(&value.items); graphs && !graphs->empty())
      return graphs->front().get();
  return nullptr;
}

bool find_path(const Graph &graph, std::string_view name, std::vector<uint32_t> &path) {
  if (const Node *node = graph.find(name)) {
    path.push_back(static_cast<uint32_t>(graph.position(node->id)));
    return true;
  }
  // A name may have dots of its own.
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const Node *call = graph.find(name.substr(0, dot));
    const Graph *called = call ? called_graph(*call) : nullptr;
    if (!called) continue;
    path.push_back(static_cast<uint32_t>(graph.position(call->id)));
    if (find_path(*called, name.substr(dot + 1), path)) return true;
    path.pop_back();
  }
  return false;
}

std::string name_at(const Graph &keyed, std::span<const uint32_t> path) {
  std::string name;
  const Graph *graph = &keyed;
  for (const uint32_t position : path) {
    if (!graph || position >= graph->nodes().size()) return "";  // of a record that was forged
    const Node &node = graph->nodes()[position];
    str_append(name, str_cat(name.empty() ? "" : ".", node.name));
    graph = called_graph(node);
  }
  return name;
}

}  // namespace

Plan::NodeRef find_node(const Graph &keyed, std::string_view name) {
  Plan::NodeRef node;
  if (find_path(keyed, name, node.path)) node.name = name;
  return node;
}

void name_nodes(const Graph &keyed, Plan &plan) {
  for (Plan::Check &check : plan.checks) check.node.name = name_at(keyed, check.node.path);
  for (Plan::Risk &risk : plan.risks) risk.node.name = name_at(keyed, risk.node.path);
}

}  // namespace kiln
