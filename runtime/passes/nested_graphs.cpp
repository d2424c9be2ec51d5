#include "runtime/passes/nested_graphs.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "runtime/graph/edit.h"
#include "runtime/ops/nested.h"

namespace kiln {
namespace {

// Graphs of which none carries an earlier one.
class OuterFirst {
 public:
  explicit OuterFirst(const Graph &graph) {
    visit(graph);
    std::ranges::reverse(order_);
  }
  std::span<const Graph *const> graphs() const { return order_; }

 private:
  void visit(const Graph &graph) {
    if (!seen_.insert(&graph).second) return;
    for (const Node &node : graph.nodes())
      for (const auto &[attr, nested] : nested_graphs(node)) visit(*nested);
    order_.push_back(&graph);
  }
  std::vector<const Graph *> order_;
  std::unordered_set<const Graph *> seen_;
};

// Which inputs of each nested graph are given parameters or constants alone, by all nodes that carry it.
using FixedInputs = std::unordered_map<const Graph *, std::vector<bool>>;

FixedInputs fixed_inputs(const Graph &whole) {
  FixedInputs fixed;
  const OuterFirst order(whole);
  for (const Graph *graph : order.graphs()) {
    const auto is_fixed = [&](ValueId value) {
      const Node &node = *graph->find(value.node);
      if (node.kind != Node::Kind::input) return node.kind != Node::Kind::op;
      const auto own = fixed.find(graph);
      const auto at = std::ranges::find(graph->inputs(), node.id) - graph->inputs().begin();
      return own != fixed.end() && own->second[static_cast<size_t>(at)];
    };
    for (const Node &node : graph->nodes()) {
      for (const auto &[attr, nested] : nested_graphs(node)) {
        std::vector<bool> &of_nested = fixed.try_emplace(nested.get(), nested->inputs().size(), true).first->second;
        for (uint32_t i = 0; i < of_nested.size(); ++i) {
          const std::optional<uint32_t> operand = operand_given(node, attr, i);
          of_nested[i] = of_nested[i] && operand && is_fixed(node.inputs[*operand]);
        }
      }
    }
  }
  return fixed;
}

class Rewriter {
 public:
  Rewriter(const Graph &whole, const RewriteGraph &rewrite) : rewrite_(rewrite), fixed_(fixed_inputs(whole)) {}

  // `graph` with its nested graphs rewritten, and nothing else. `fixed`: of its inputs; empty: of the outermost graph.
  Result<GraphPtr> carrier(const GraphPtr &graph, const std::string &where, const std::vector<bool> &fixed = {}) {
    Edit edit(graph);
    bool changed = false;
    for (size_t i = 0; i < fixed.size(); ++i) {
      if (graph->find(graph->inputs()[i])->given_fixed == fixed[i]) continue;
      edit.set_given_fixed(graph->inputs()[i], fixed[i]);
      changed = true;
    }
    for (const Node &node : graph->nodes()) {
      for (const auto &[name, value] : node.attrs) {
        if (value.kind() != AttrKind::graph) continue;
        KILN_ASSIGN(AttrValue now, attribute(value, str_cat("node '", node.name, "'", where)));
        if (std::get<std::vector<GraphPtr>>(now.items) == std::get<std::vector<GraphPtr>>(value.items)) continue;
        KILN_TRY(edit.set_attr(node.id, name, std::move(now)));
        changed = true;
      }
    }
    return changed ? edit.finish(false) : graph;
  }

 private:
  Result<AttrValue> attribute(AttrValue value, const std::string &where) {
    for (GraphPtr &nested : std::get<std::vector<GraphPtr>>(value.items)) {
      if (!made_.contains(nested.get())) {
        KILN_ASSIGN(const GraphPtr inner, carrier(nested, " of " + where, fixed_.at(nested.get())));
        KILN_ASSIGN(made_[nested.get()], rewrite_(inner, where));
      }
      nested = made_.at(nested.get());
    }
    return value;
  }

  const RewriteGraph &rewrite_;
  const FixedInputs fixed_;
  std::unordered_map<const Graph *, GraphPtr> made_;  // by the graph that it was made of, which `whole` holds
};

}  // namespace

Result<GraphPtr> rewrite_nested(const GraphPtr &graph, const RewriteGraph &rewrite) {
  if (std::ranges::all_of(graph->nodes(), [](const Node &node) { return nested_graphs(node).empty(); })) return graph;
  return Rewriter(*graph, rewrite).carrier(graph, "");
}

}  // namespace kiln
