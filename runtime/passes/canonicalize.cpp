#include <algorithm>
#include <array>
#include <utility>

#include "jit/base/small_float.h"
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

// Whether it is a float of full precision in the type, and not only where that is computed.
bool is_normal(double number, DType dtype) {
  if (dtype == DType::f64) return std::isnormal(number);
  if (dtype == DType::f32) return std::isnormal(static_cast<float>(number));
  const FloatFormat format = small_format(dtype);
  const double least = std::ldexp(1.0, 1 - format.bias());
  return std::abs(number) >= least && std::abs(number) <= decode_float(static_cast<uint16_t>(format.largest()), format);
}

// Of a division by a power of two: the product with its reciprocal, which is a float of full precision, too. Both
// round the same number.
Result<ValueId> multiplied(Edit &edit, const OpTable &ops, const Node &node) {
  if (node.op->name != "div" || !edit.view().type(node.inputs[0]).same_value_type(node.results[0])) return ValueId();
  const std::optional<Number> number = number_of_all(edit.view(), node.inputs[1]);
  int exponent = 0;
  if (!number || !number->is_float() || std::abs(std::frexp(number->f, &exponent)) != 0.5) return ValueId();
  const double reciprocal = 1 / number->f;
  if (!is_normal(reciprocal, number->dtype) || number->is_one()) return ValueId();
  return replacement_by_number(edit, ops, node, "mul", node.inputs[0], reciprocal);
}

}  // namespace

Pass canonicalize_pass() {
  return replacing_pass("canonicalize", 1000, [](PassContext &context) -> MakeReplacement {
    return [&context](const Node &node, const OutputStorage &) -> Result<ValueId> {
      KILN_ASSIGN(const ValueId product, multiplied(context.edit, context.ops, node));
      return product ? product : turned(context.edit, context.ops, node);
    };
  });
}

}  // namespace kiln
