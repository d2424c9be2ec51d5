#include <algorithm>
#include <array>
#include <utility>

#include "runtime/passes/builtin.h"
#include "runtime/passes/number.h"
#include "runtime/passes/replacing.h"

namespace kiln {
namespace {

// Of a comparison: what says the same of its operands the other way round.
std::string_view mirrored(std::string_view op) {
  constexpr std::array pairs = {std::pair{"lt", "gt"}, std::pair{"le", "ge"}, std::pair{"gt", "lt"},
                                std::pair{"ge", "le"}};
  const auto found = std::ranges::find(pairs, op, [](const auto &pair) { return std::string_view(pair.first); });
  return found == pairs.end() ? std::string_view() : found->second;
}

// Constants, and what is all one number, come second.
Result<ValueId> turned(Edit &edit, const OpTable &ops, const Node &node) {
  const bool commutes = node.op->flags & op_flags::commutes;
  const std::string_view op = commutes ? node.op->name : mirrored(node.op->name);
  if (op.empty() || node.inputs.size() != 2) return ValueId();
  const auto is_known = [&](ValueId value) {
    return edit.view().find(value.node)->constant || number_of_all(edit.view(), value);
  };
  if (!is_known(node.inputs[0]) || is_known(node.inputs[1])) return ValueId();
  return replacement(edit, node, ops.find(op), {{node.inputs[1], node.inputs[0]}}, node.attrs);
}

}  // namespace

Pass canonicalize_pass() {
  return replacing_pass("canonicalize", 1000, [](PassContext &context) -> MakeReplacement {
    return [&context](const Node &node, const OutputStorage &) { return turned(context.edit, context.ops, node); };
  });
}

}  // namespace kiln
