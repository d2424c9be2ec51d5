#include "runtime/graph/graph.h"

#include <algorithm>
#include <cassert>

namespace kiln {

void Graph::append(Node node) {
  position_.emplace(node.id, nodes_.size());
  by_name_.emplace(node.name, node.id);
  for (ValueId value : node.inputs) {
    std::vector<uint32_t> &users = users_[value];
    if (users.empty() || users.back() != node.id) users.push_back(node.id);  // it is the last node: order stays
  }
  next_id_ = std::max(next_id_, node.id + 1);
  nodes_.push_back(std::move(node));
}

void Graph::use_instead(ValueId from, ValueId to) {
  auto moved = users_.extract(from);
  if (!moved.empty()) {
    // One by one: a value that takes over many others' users, as a merged constant does, has a long list by then.
    std::vector<uint32_t> &users = users_[to];
    for (uint32_t id : moved.mapped()) {
      std::ranges::replace(nodes_[position(id)].inputs, from, to);
      const auto at =
          std::ranges::lower_bound(users, position(id), {}, [this](uint32_t user) { return position(user); });
      if (at == users.end() || *at != id) users.insert(at, id);
    }
  }
  for (GraphOutput &output : outputs_)
    if (output.value == from) output.value = to;
}

const Node *Graph::find(uint32_t id) const {
  auto found = position_.find(id);
  return found == position_.end() ? nullptr : &nodes_[found->second];
}

const Node *Graph::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : find(found->second);
}

size_t Graph::position(uint32_t id) const {
  assert(position_.contains(id));
  return position_.find(id)->second;
}

const TensorType &Graph::type(ValueId value) const {
  assert(has(value));
  return nodes_[position(value.node)].results[value.output];
}

bool Graph::has(ValueId value) const {
  const Node *node = find(value.node);
  return node && value.output < node->results.size();
}

uint32_t Graph::use_count(ValueId value) const {
  int64_t count = std::ranges::count(outputs_, value, &GraphOutput::value);
  if (auto found = users_.find(value); found != users_.end())
    for (uint32_t id : found->second) count += std::ranges::count(find(id)->inputs, value);
  return static_cast<uint32_t>(count);
}

std::vector<uint32_t> Graph::users(ValueId value) const {
  auto found = users_.find(value);
  return found == users_.end() ? std::vector<uint32_t>() : found->second;
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
