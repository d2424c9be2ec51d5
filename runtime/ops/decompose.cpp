#include "runtime/ops/decompose.h"

#include <utility>

namespace kiln {

Result<ValueId> DecomposeContext::add(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs) {
  const OpSchema *schema = ops.find(op);
  if (!schema) return error(Code::internal, "decomposition of '", node.op->name, "' needs the unknown op '", op, "'");
  KILN_ASSIGN(uint32_t id, edit.add(schema, inputs, std::move(attrs)));
  return ValueId{id, 0};
}

Result<ValueId> DecomposeContext::scalar(DType dtype, double value) {
  return add("full", {}, {{"value", value}, {"dtype", dtype}, {"shape", AttrValue(Shape{})}});
}

Result<ValueId> DecomposeContext::count(DType dtype, const Dim &value) {
  if (value.is_integer()) return scalar(dtype, static_cast<double>(value.integer()));
  return add("size", {}, {{"value", value}, {"dtype", dtype}});
}

namespace {

// One node; appends what it added to `added`.
Status decompose_node(Edit &edit, const OpTable &ops, const Node &node, std::vector<uint32_t> &added) {
  const uint32_t first_new = edit.view().next_id();
  edit.push_scope(node.annotations);
  DecomposeContext context{edit, ops, node, {}};
  Status status = op_of(node).decompose(context);
  KILN_TRY(edit.pop_scope());
  KILN_TRY(std::move(status).with_prefix(str_cat("decomposing node '", node.name, "' (", node.op->name, "): ")));
  for (uint32_t k = 0; k < context.results.size(); ++k) {
    // A dim may be known better than in the node's own type (an integer that a symbol must equal): named as there.
    ValueId to = context.results[k];
    if (!edit.view().type(to).same_value_type(node.results[k])) {
      KILN_ASSIGN(to, context.add("reshape", {to}, {{"shape", AttrValue(node.results[k].dims)}}));
    }
    KILN_TRY(edit.replace({node.id, k}, to));
  }
  for (uint32_t id = first_new; id < edit.view().next_id(); ++id) added.push_back(id);
  return {};
}

}  // namespace

Result<GraphPtr> decompose(GraphPtr graph, const OpTable &ops, const std::function<bool(const Node &)> &keep) {
  Edit edit(graph);
  std::vector<uint32_t> pending;
  for (const Node &node : graph->nodes()) pending.push_back(node.id);
  bool changed = false;
  for (size_t k = 0; k < pending.size(); ++k) {
    const Node *found = edit.view().find(pending[k]);
    if (!found || found->kind != Node::Kind::op || !op_of(*found).decompose || (keep && keep(*found))) continue;
    const Node node = *found;  // the view changes below
    KILN_TRY(decompose_node(edit, ops, node, pending));
    changed = true;
  }
  if (!changed) return graph;
  return edit.finish(false);
}

}  // namespace kiln
