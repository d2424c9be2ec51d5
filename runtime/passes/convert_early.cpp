#include <algorithm>

#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

bool is_output(const Graph &graph, ValueId value) {
  return std::ranges::any_of(graph.outputs(), [&](const GraphOutput &output) { return output.value == value; });
}

// The reshape that a conversion follows, and that nothing else reads.
const Node *followed(const Graph &graph, const Node &node) {
  if (node.kind != Node::Kind::op || node.op->name != "convert") return nullptr;
  const ValueId given = node.inputs[0];
  const Node &before = *graph.find(given.node);
  if (before.kind != Node::Kind::op || before.op->name != "reshape" || !before.equalities.empty()) return nullptr;
  return graph.users(given).size() == 1 && !is_output(graph, given) ? &before : nullptr;
}

// Each is added in the other's place, for the node that it comes from.
Status exchange(Edit &edit, const Node &convert, const Node &reshape) {
  const auto add = [&](const Node &of, ValueId operand) -> Result<ValueId> {
    edit.push_scope(of.annotations, of.name);
    KILN_ASSIGN(const uint32_t id, edit.add(of.op, {&operand, 1}, of.attrs));
    KILN_TRY(edit.pop_scope());
    return ValueId{id, 0};
  };
  const ValueId whole = edit.view().find(reshape.id)->inputs[0];  // as it is by now
  KILN_ASSIGN(const ValueId converted, add(convert, whole));
  KILN_ASSIGN(const ValueId shaped, add(reshape, converted));
  return edit.replace({convert.id, 0}, shaped);
}

}  // namespace

Result<GraphPtr> convert_early(GraphPtr graph) {
  const auto is_one = [&](const Node &node) { return followed(*graph, node) != nullptr; };
  if (std::ranges::none_of(graph->nodes(), is_one)) return graph;
  Edit edit(graph);
  for (const Node &node : graph->nodes())
    if (const Node *reshape = followed(*graph, node)) KILN_TRY(exchange(edit, node, *reshape));
  return edit.finish(false);
}

}  // namespace kiln
