// Edit: the order of nodes, and the graph that an edit ends in.
#include <algorithm>

#include "runtime/graph/edit.h"

namespace kiln {

bool Edit::is_pinned(const Node &node) const {
  if (node.op && node.op->flags & op_flags::mutates) return true;
  if (!has_effect(node) || released_.contains(node.id)) return false;
  const auto is_in_force = [&](uint32_t k) {
    return node.results[k].dtype == DType::token && !replaced_tokens_.contains({node.id, k});
  };
  for (uint32_t k = 0; k < node.results.size(); ++k)
    if (is_in_force(k)) return true;
  return !makes_token(node);
}

// Depth first from each op in the order in which they stand, operands first: what was sorted stays as it was, and what
// was added comes just before its first user. Iterative, for chains may be long.
std::vector<size_t> Edit::sorted_ops(bool live_only) const {
  const auto nodes = graph_.nodes();
  auto mutates = [](const Node &n) { return n.op && (n.op->flags & op_flags::mutates) != 0; };

  // What must come before a node: its operands, then what resolves symbols that it speaks of.
  std::vector<std::vector<size_t>> resolvers(graph_.resolvers_.empty() ? 0 : nodes.size());
  for (size_t at = 0; at < resolvers.size(); ++at)
    for (const Node *resolver : graph_.resolvers_for(nodes[at])) resolvers[at].push_back(graph_.position(resolver->id));
  const auto count_before = [&](size_t at) {
    return nodes[at].inputs.size() + (resolvers.empty() ? 0 : resolvers[at].size());
  };
  const auto before = [&](size_t at, size_t k) {
    const std::vector<ValueId> &inputs = nodes[at].inputs;
    return k < inputs.size() ? graph_.position(inputs[k].node) : resolvers[at][k - inputs.size()];
  };

  std::vector<bool> live(nodes.size(), !live_only);
  if (live_only) {
    std::vector<size_t> open;
    auto reach = [&](size_t at) {
      if (live[at]) return;
      live[at] = true;
      open.push_back(at);
    };
    for (const GraphOutput &output : graph_.outputs_) reach(graph_.position(output.value.node));
    for (size_t at = 0; at < nodes.size(); ++at)
      if (is_pinned(nodes[at])) reach(at);
    while (!open.empty()) {
      size_t at = open.back();
      open.pop_back();
      for (size_t k = 0; k < count_before(at); ++k) reach(before(at, k));
    }
  }

  std::vector<size_t> order;
  std::vector<bool> placed(nodes.size(), false);
  struct Visit {
    size_t at, next;
  };
  auto place = [&](size_t root) {
    if (placed[root]) return;
    placed[root] = true;
    std::vector<Visit> stack{{root, 0}};
    while (!stack.empty()) {
      auto &[at, next] = stack.back();
      if (next == count_before(at)) {
        if (nodes[at].kind == Node::Kind::op) order.push_back(at);
        stack.pop_back();
        continue;
      }
      const size_t operand = before(at, next++);
      if (placed[operand]) continue;
      placed[operand] = true;
      stack.push_back({operand, 0});
    }
  };
  for (bool epilogue : {false, true})  // what writes inputs comes after all that reads them
    for (size_t at = 0; at < nodes.size(); ++at)
      if (live[at] && nodes[at].kind == Node::Kind::op && mutates(nodes[at]) == epilogue) place(at);
  return order;
}

void Edit::renumber() {
  std::ranges::fill(ranks_, Rank{});
  uint32_t rank = 1;  // 0: all that has no operands
  for (size_t at : sorted_ops(false)) ranks_[at] = {rank++, 0};
  ranks_hold_ = true;
}

Result<GraphPtr> Edit::finish(bool verify_all) {
  begin();
  const auto nodes = graph_.nodes();
  const std::vector<size_t> ops = sorted_ops(true);
  std::vector<bool> used(nodes.size(), false);  // by position
  for (size_t at : ops)
    for (ValueId value : nodes[at].inputs) used[graph_.position(value.node)] = true;
  for (const GraphOutput &output : graph_.outputs_) used[graph_.position(output.value.node)] = true;

  auto graph = std::make_shared<Graph>();
  for (uint32_t id : graph_.inputs_) graph->append_shared(graph_, graph_.position(id));
  for (uint32_t id : graph_.parameters_) graph->append_shared(graph_, graph_.position(id));
  for (size_t at = 0; at < nodes.size(); ++at)
    if (nodes[at].kind == Node::Kind::constant && used[at]) graph->append_shared(graph_, at);
  for (size_t at : ops) graph->append_shared(graph_, at);
  graph_.share_all();
  graph->inputs_ = graph_.inputs_;
  graph->parameters_ = graph_.parameters_;
  graph->outputs_ = graph_.outputs_;
  graph->symbols_ = graph_.symbols_;
  std::erase_if(graph->symbols_, [&](const auto &symbol) {  // of nodes that are left out
    return graph_.resolver(symbol.first) && !graph->resolver(symbol.first);
  });
  graph->next_id_ = graph_.next_id_;  // an id that was left out is not used again
  hand_down_annotations(*graph);
  if (verify_all) {
    KILN_TRY(verify(*graph));
    graph->verified_ = true;
  }
  return GraphPtr(std::move(graph));
}

}  // namespace kiln
