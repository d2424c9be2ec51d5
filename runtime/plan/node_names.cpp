#include "runtime/plan/node_names.h"

#include <optional>

#include "runtime/graph/annotations.h"
#include "runtime/ops/nested.h"
#include "runtime/ops/op.h"

namespace kiln {
namespace {

// The graph of `node` that `rest`, what follows the node's name and a dot, speaks of, with its number; what of `rest`
// is left is the name of a node in it. But for the graph of a call it says by attribute which one: "then_graph.y".
struct Inner {
  const Graph *graph;
  uint32_t number;
  std::string_view rest;
};
std::optional<Inner> inner_of(const Node &node, std::string_view rest) {
  const auto graphs = nested_graphs(node);
  for (uint32_t i = 0; i < graphs.size(); ++i) {
    const std::string_view attr = graphs[i].first;
    if (is_call(node) && attr == called_attr(node)) return Inner{graphs[i].second.get(), i, rest};
    if (rest.starts_with(attr) && rest.substr(attr.size()).starts_with("."))
      return Inner{graphs[i].second.get(), i, rest.substr(attr.size() + 1)};
  }
  return std::nullopt;
}

bool find_path(const Graph &graph, std::string_view name, std::vector<uint32_t> &path) {
  if (const Node *node = graph.find(name)) {
    path.push_back(static_cast<uint32_t>(graph.position(node->id)));
    return true;
  }
  // A name may have dots of its own.
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const Node *carrier = graph.find(name.substr(0, dot));
    const std::optional<Inner> inner = carrier ? inner_of(*carrier, name.substr(dot + 1)) : std::nullopt;
    if (!inner) continue;
    path.push_back(static_cast<uint32_t>(graph.position(carrier->id)));
    path.push_back(inner->number);
    if (find_path(*inner->graph, inner->rest, path)) return true;
    path.resize(path.size() - 2);
  }
  for (size_t dot = name.rfind('.'); dot != name.npos && dot > 0; dot = name.rfind('.', dot - 1)) {
    const Node *composite = graph.find(name.substr(0, dot));
    if (!composite || !composite->op || !op_of(*composite).decompose) continue;
    path.push_back(static_cast<uint32_t>(graph.position(composite->id)));
    return true;
  }
  return false;
}

std::string debug_of(const Node &node) {
  std::string text;
  for (const auto &[name, value] : node.annotations) {
    if (!is_for_people(name)) continue;
    const bool is_text = value.kind() == AttrKind::text && !value.is_list;
    str_append(text, str_cat(text.empty() ? "" : ", ", name, "=", is_text ? value.text_value() : value.text()));
  }
  return text;
}

struct Named {
  std::string name;
  const Node *node = nullptr;
};
Named node_at(const Graph &keyed, std::span<const uint32_t> path) {
  std::string name;
  const Graph *graph = &keyed;
  for (size_t i = 0; i < path.size(); i += 2) {
    if (path[i] >= graph->nodes().size()) return {};  // of a record that was forged
    const Node &node = graph->nodes()[path[i]];
    str_append(name, node.name);
    if (i + 1 == path.size()) return {name, &node};
    const auto graphs = nested_graphs(node);
    if (path[i + 1] >= graphs.size()) return {};
    const auto &[attr, inner] = graphs[path[i + 1]];
    str_append(name, is_call(node) && attr == called_attr(node) ? "." : str_cat(".", attr, "."));
    graph = inner.get();
  }
  return {};
}

void set_name(const Graph &keyed, Plan::NodeRef &ref) {
  Named named = node_at(keyed, ref.path);
  ref.name = std::move(named.name);
  ref.debug = named.node ? debug_of(*named.node) : "";
}

void name_all(const Graph &keyed, Plan &plan) {
  for (Plan::Check &check : plan.checks) set_name(keyed, check.node);
  for (Plan::Symbol &symbol : plan.symbols) set_name(keyed, symbol.node);
  for (Plan::Risk &risk : plan.risks) set_name(keyed, risk.node);
  for (std::vector<Plan::Step> *steps : {&plan.prepare, &plan.steps})
    for (Plan::Step &step : *steps) {
      set_name(keyed, step.node);
      for (Plan::Origin &origin : step.origins) set_name(keyed, origin.node);
    }
  for (Plan &nested : plan.nested) name_all(keyed, nested);
}

}  // namespace

std::string NodeNames::full(std::string_view name) const {
  // The longest part of it, up to a dot, that is a node's; what follows was added by inlining or decomposing.
  for (size_t end = name.size(); twin && end != name.npos; end = name.substr(0, end).rfind('.'))
    if (const Node *node = twin->find(name.substr(0, end)); node && node->kind == Node::Kind::op) {
      const size_t place = twin->position(node->id) + own.size() - twin->nodes().size();  // op nodes are the last
      return str_cat(prefix, whole->find(own[place])->name, name.substr(end));
    }
  return str_cat(prefix, name);
}

Plan::NodeRef NodeNames::find(std::string_view name) const {
  Plan::NodeRef node;
  if (find_path(keyed, full(name), node.path)) set_name(keyed, node);
  return node;
}

Plan::Origin NodeNames::origin(std::string_view name, std::string_view made, const Graph &graph) const {
  Plan::NodeRef node = find(name);
  if (!node.path.empty()) {
    std::string op_of_it = op(node, made);
    return {std::move(node), std::move(op_of_it)};
  }
  // What it became is called "y.mul".
  for (size_t end = name.size(); end != name.npos && end > 0; end = name.rfind('.', end - 1)) {
    const std::string_view whole_name = name.substr(0, end);
    const Node *there = graph.find(whole_name);
    if (!there || !there->op) continue;
    return {{{}, full(whole_name), debug_of(*there)}, std::string(there->op->name)};
  }
  node.name = full(name);
  return {std::move(node), std::string(made)};
}

std::string NodeNames::op(const Plan::NodeRef &node, std::string_view made) const {
  const Node *found = node_at(keyed, node.path).node;
  return std::string(found && found->op ? found->op->name : made);
}

void name_nodes(const Graph &keyed, Plan &plan) { name_all(keyed, plan); }

void name_nodes(const Graph &keyed, std::vector<Plan::NodeRef> &nodes) {
  for (Plan::NodeRef &ref : nodes)
    if (const Node *node = node_at(keyed, ref.path).node; node && node->name != ref.name) ref.name = node->name;
}

}  // namespace kiln
