#include "runtime/passes/nested_graphs.h"

#include <unordered_map>

#include "runtime/graph/edit.h"

namespace kiln {
namespace {

class Rewriter {
 public:
  explicit Rewriter(const RewriteGraph &rewrite) : rewrite_(rewrite) {}

  // `graph` with its nested graphs rewritten, and nothing else.
  Result<GraphPtr> carrier(const GraphPtr &graph, const std::string &where) {
    Edit edit(graph);
    bool changed = false;
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
      auto [made, is_new] = made_.try_emplace(nested.get());
      if (is_new) {
        KILN_ASSIGN(const GraphPtr inner, carrier(nested, " of " + where));
        KILN_ASSIGN(GraphPtr after, rewrite_(inner, where));
        made_[nested.get()] = {nested, std::move(after)};
      }
      nested = made_.at(nested.get()).after;
    }
    return value;
  }

  struct Made {
    GraphPtr before, after;  // the former is held, so that no other graph gets its address
  };
  const RewriteGraph &rewrite_;
  std::unordered_map<const Graph *, Made> made_;
};

}  // namespace

Result<GraphPtr> rewrite_nested(const GraphPtr &graph, const RewriteGraph &rewrite) {
  return Rewriter(rewrite).carrier(graph, "");
}

}  // namespace kiln
