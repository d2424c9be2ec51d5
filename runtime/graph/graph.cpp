#include "runtime/graph/graph.h"

#include <algorithm>
#include <cassert>
#include <set>

namespace kiln {
namespace {

constexpr uint32_t absent = UINT32_MAX;

}  // namespace

void Graph::append(Node node) {
  nodes_.push_back(std::make_shared<Node>(std::move(node)));
  shared_.push_back(false);
  index(*nodes_.back());
}

void Graph::append_shared(const Graph &from, size_t position) {
  nodes_.push_back(from.nodes_[position]);
  shared_.push_back(true);
  index(*nodes_.back());
}

void Graph::index(const Node &node) {
  if (node.id >= position_.size()) position_.resize(std::max<size_t>(node.id + 1, 2 * position_.size()), absent);
  position_[node.id] = static_cast<uint32_t>(nodes_.size() - 1);
  by_name_.emplace(node.name, node.id);
  users_.emplace_back();
  for (ValueId value : node.inputs) {
    std::vector<uint32_t> &users = users_[position(value.node)];
    if (users.empty() || users.back() != node.id) users.push_back(node.id);  // it is the last node: order stays
  }
  for (const ResolvedSymbol &symbol : node.symbols) resolvers_.try_emplace(symbol.name, node.id);
  has_effects_ = has_effects_ || has_effect(node);
  next_id_ = std::max(next_id_, node.id + 1);
}

Node &Graph::writable(uint32_t id) {
  const size_t at = position(id);
  if (shared_[at]) {
    auto name = by_name_.extract(nodes_[at]->name);
    nodes_[at] = std::make_shared<Node>(*nodes_[at]);
    name.key() = nodes_[at]->name;
    by_name_.insert(std::move(name));
    shared_[at] = false;
  }
  return *nodes_[at];
}

void Graph::use_instead(ValueId from, ValueId to) {
  auto by_position = [this](uint32_t id) { return position(id); };
  std::vector<uint32_t> &old = users_[position(from.node)];
  // One by one: a value that takes over many others' users, as a merged constant does, has a long list by then.
  std::vector<uint32_t> &users = users_[position(to.node)];
  for (uint32_t id : this->users(from)) {
    Node &user = writable(id);
    std::ranges::replace(user.inputs, from, to);
    const auto at = std::ranges::lower_bound(users, position(id), {}, by_position);
    if (at == users.end() || *at != id) users.insert(at, id);
  }
  std::erase_if(old, [&](uint32_t id) {
    const std::vector<ValueId> &inputs = find(id)->inputs;
    return std::ranges::find(inputs, from.node, &ValueId::node) == inputs.end();
  });
  for (GraphOutput &output : outputs_)
    if (output.value == from) output.value = to;
}

void Graph::rename(uint32_t id, std::string name) {
  Node &node = writable(id);
  by_name_.erase(node.name);
  node.name = std::move(name);
  by_name_.emplace(node.name, id);
}

void Graph::retire(uint32_t id, std::string name) {
  rename(id, std::move(name));
  Node &node = writable(id);
  for (const ResolvedSymbol &symbol : node.symbols) resolvers_.erase(symbol.name);
  node.symbols.clear();
}

const Node *Graph::find(uint32_t id) const {
  return id < position_.size() && position_[id] != absent ? nodes_[position_[id]].get() : nullptr;
}

const Node *Graph::resolver(const std::string &symbol) const {
  const auto found = resolvers_.find(symbol);
  return found == resolvers_.end() ? nullptr : find(found->second);
}

bool has_effect(const Node &node) {
  if (!node.op) return false;
  if (node.op->flags & op_flags::effect) return true;
  return std::ranges::any_of(node.attrs, [](const auto &attr) {
    const auto *graphs = std::get_if<std::vector<GraphPtr>>(&attr.second.items);
    return graphs && std::ranges::any_of(*graphs, [](const GraphPtr &g) { return g && g->has_effects(); });
  });
}

bool makes_token(const Node &node) {
  return node.op && std::ranges::find(node.results, DType::token, &TensorType::dtype) != node.results.end();
}

std::set<std::string> symbols_of(const Node &node) {
  std::set<std::string> used;
  for (const TensorType &type : node.results)
    for (const Dim &dim : type.dims) dim.collect_symbols(used);
  for (const auto &[name, value] : node.attrs)
    if (value.kind() == AttrKind::dim)
      for (const Dim &dim : value.dim_list()) dim.collect_symbols(used);
  return used;
}

std::vector<const Node *> Graph::resolvers_for(const Node &node) const {
  if (resolvers_.empty()) return {};
  std::vector<const Node *> nodes;
  for (const std::string &symbol : symbols_of(node))
    if (const Node *found = resolver(symbol); found && found->id != node.id) nodes.push_back(found);
  return nodes;
}

const Node *Graph::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : find(found->second);
}

size_t Graph::position(uint32_t id) const {
  assert(find(id));
  return position_[id];
}

const TensorType &Graph::type(ValueId value) const {
  assert(has(value));
  return nodes_[position(value.node)]->results[value.output];
}

bool Graph::has(ValueId value) const {
  const Node *node = find(value.node);
  return node && value.output < node->results.size();
}

uint32_t Graph::use_count(ValueId value) const {
  if (!has(value)) return 0;
  int64_t count = std::ranges::count(outputs_, value, &GraphOutput::value);
  for (uint32_t id : users_[position(value.node)]) count += std::ranges::count(find(id)->inputs, value);
  return static_cast<uint32_t>(count);
}

std::vector<uint32_t> Graph::users(ValueId value) const {
  if (!has(value)) return {};
  std::vector<uint32_t> users = users_[position(value.node)];
  std::erase_if(users, [&](uint32_t id) {
    const std::vector<ValueId> &inputs = find(id)->inputs;
    return std::ranges::find(inputs, value) == inputs.end();
  });
  return users;
}

ValueId Graph::storage_of(ValueId value) const {
  while (ValueId base = type(value).alias_of) value = base;
  return value;
}

std::string text_of(const Graph &graph, ValueId value) {
  const Node *node = graph.find(value.node);
  std::string name = node ? node->name : str_cat("#", value.node);
  return node && node->results.size() == 1 && value.output == 0 ? name : str_cat(name, ":", value.output);
}

}  // namespace kiln
