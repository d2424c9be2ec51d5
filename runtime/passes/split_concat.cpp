#include <algorithm>
#include <span>
#include <vector>

#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

// A kernel asks for each element which operand it lies in, one operand after the other: time and code grow with their
// number, while each level of a tree costs one more copy.
constexpr size_t most_operands = 32;

bool is_wide(const Node &node) {
  return node.kind == Node::Kind::op && node.op->name == "concat" && node.inputs.size() > most_operands;
}

Result<ValueId> concat(Edit &edit, const Node &like, std::span<const ValueId> values) {
  if (values.size() == 1) return values[0];
  KILN_ASSIGN(const uint32_t id, edit.add(like.op, values, like.attrs));
  return ValueId{id, 0};
}

// The concats of parts of about equal size, as few as there can be.
Result<std::vector<ValueId>> one_level(Edit &edit, const Node &like, std::span<const ValueId> values) {
  const size_t count = (values.size() + most_operands - 1) / most_operands;
  std::vector<ValueId> parts;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = values.size() * i / count, end = values.size() * (i + 1) / count;
    KILN_ASSIGN(parts.emplace_back(), concat(edit, like, values.subspan(begin, end - begin)));
  }
  return parts;
}

Status split(Edit &edit, uint32_t id) {
  const Node node = *edit.view().find(id);  // with the operands that it has by now
  edit.push_scope(node.annotations);
  std::vector<ValueId> parts = node.inputs;
  while (parts.size() > 1) {
    KILN_ASSIGN(parts, one_level(edit, node, parts));
  }
  KILN_TRY(edit.pop_scope());
  return edit.replace({id, 0}, parts.front());
}

}  // namespace

Result<GraphPtr> split_concats(GraphPtr graph) {
  if (std::ranges::none_of(graph->nodes(), is_wide)) return graph;
  Edit edit(graph);
  for (const Node &node : graph->nodes()) {
    if (is_wide(node)) KILN_TRY(split(edit, node.id));
  }
  return edit.finish(false);
}

}  // namespace kiln
