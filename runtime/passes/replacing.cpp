#include "runtime/passes/replacing.h"

#include <algorithm>

#include "runtime/graph/annotations.h"

namespace kiln {

OutputStorage::OutputStorage(const Edit &edit) : edit_(edit) {
  const Graph &graph = edit.view();
  for (const GraphOutput &output : graph.outputs()) {
    outputs_.insert(output.value);
    roots_.insert(graph.storage_of(output.value));
  }
  for (const Node &node : graph.nodes())
    if (node.op && node.op->flags & op_flags::mutates) written_.insert(node.inputs[0].node);
}

bool OutputStorage::allows(ValueId from, ValueId to) const {
  const Graph &graph = edit_.view();
  const auto is_computed = [&](ValueId value) { return graph.find(value.node)->kind == Node::Kind::op; };
  if (outputs_.contains(from) && is_computed(from) && !is_computed(to)) return false;
  const ValueId root = graph.storage_of(from), other = graph.storage_of(to);
  if (root == other) return true;
  if (written_.contains(other.node)) return false;  // what is read later must be what it is now
  if (!holds(from)) return true;
  return !roots_.contains(other) && (is_computed(other) || !is_computed(root));
}

void OutputStorage::replaced(ValueId from, ValueId to) {
  if (outputs_.erase(from)) outputs_.insert(to);
  if (holds(from)) roots_.insert(edit_.view().storage_of(to));
}

bool may_go(const Node &node, const Node &other) {
  if (other.op && same_annotations(node.annotations, other.annotations)) return true;
  return std::ranges::all_of(node.annotations, [](const auto &annotation) { return is_for_people(annotation.first); });
}

namespace {

bool is_replaceable(const Node &node) {
  constexpr uint32_t kept =
      op_flags::random | op_flags::mutates | op_flags::control | op_flags::resolves | op_flags::registered;
  if (node.kind != Node::Kind::op || node.op->flags & kept || has_effect(node)) return false;
  return node.results.size() == 1 && node.equalities.empty() && !node.annotations.contains(function_annotation) &&
         !node.annotations.contains("kiln.fallback") && !node.annotations.contains("kiln.cut");
}

}  // namespace

Result<uint64_t> replace_each(Edit &edit, const MakeReplacement &make) {
  OutputStorage outputs(edit);
  uint64_t count = 0;
  const size_t nodes = edit.view().nodes().size();  // those that are added are not offered
  for (size_t at = 0; at < nodes; ++at) {
    const Node &node = edit.view().nodes()[at];
    if (!is_replaceable(node)) continue;
    const ValueId from{node.id, 0};
    if (!outputs.is_output(from) && edit.view().users(from).empty()) continue;
    KILN_ASSIGN(const ValueId to, make(node, outputs));
    if (!to || !outputs.allows(from, to)) continue;
    outputs.replaced(from, to);
    KILN_TRY(edit.replace(from, to));
    ++count;
  }
  return count;
}

Pass replacing_pass(std::string_view name, int32_t priority, MakeReplacement (*begin)(PassContext &context)) {
  return {.name = std::string(name),
          .stage = Stage::post_grad,
          .priority = priority,
          .run = [begin](PassContext &context) -> Status {
            KILN_ASSIGN(context.rewrites, replace_each(context.edit, begin(context)));
            context.done = true;
            return {};
          }};
}

Result<ValueId> replacement(Edit &edit, const Node &of, const OpSchema *op, std::span<const ValueId> inputs,
                            AttrMap attrs) {
  const std::string name = of.name;
  edit.retire(of.id);
  KILN_ASSIGN(const uint32_t id, edit.add(op, inputs, std::move(attrs), name));
  return ValueId{id, 0};
}

}  // namespace kiln
