#include <algorithm>

#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

// The reshape that a conversion follows, and that nothing else reads.
const Node *followed(const Graph &graph, const Node &node) {
  if (node.kind != Node::Kind::op || node.op->name != "convert") return nullptr;
  const Node &before = *graph.find(node.inputs[0].node);
  const bool is_reshape = before.kind == Node::Kind::op && before.op->name == "reshape" && before.equalities.empty();
  return is_reshape && graph.users(node.inputs[0]).size() == 1 &&
                 std::ranges::none_of(graph.outputs(),
                                      [&](const auto &output) { return output.value == node.inputs[0]; })
             ? &before
             : nullptr;
}

Status exchange(Edit &edit, const Node &convert, const Node &reshape) {
  edit.push_scope(convert.annotations, convert.name);
  const ValueId whole = edit.view().find(reshape.id)->inputs[0];  // as it is by now
  KILN_ASSIGN(const uint32_t converted, edit.add(convert.op, {&whole, 1}, convert.attrs));
  const ValueId value{converted, 0};
  KILN_ASSIGN(const uint32_t shaped, edit.add(reshape.op, {&value, 1}, reshape.attrs));
  KILN_TRY(edit.pop_scope());
  return edit.replace({convert.id, 0}, {shaped, 0});
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
