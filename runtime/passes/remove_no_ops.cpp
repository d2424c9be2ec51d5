#include <algorithm>

#include "runtime/graph/annotations.h"
#include "runtime/passes/builtin.h"
#include "runtime/passes/number.h"
#include "runtime/passes/replacing.h"
#include "runtime/passes/views.h"

namespace kiln {
namespace {

bool is_any(const Node &node, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, node.op->name) != names.end();
}

int64_t all_ones(DType dtype) {
  const uint32_t bits = 8 * size_of(dtype);
  return dtype_info(dtype).is_signed || bits == 64 ? -1 : (int64_t{1} << bits) - 1;
}

// Whether `x OP number` is x, to the bit: x + 0 is not where x is -0, x + -0 is.
bool keeps(const Node &node, const Number &number) {
  if (is_any(node, {"add"})) return number.is_zero(number.is_float());
  if (is_any(node, {"sub"})) return number.is_zero();
  if (is_any(node, {"mul", "div"})) return number.is_one();
  if (number.is_float()) return false;
  if (is_any(node, {"and"})) return number.i != 0;
  if (is_any(node, {"bit_and"})) return number.i == all_ones(number.dtype);
  return is_any(node, {"or", "xor", "bit_or", "bit_xor", "shift_left", "shift_right"}) && number.i == 0;
}

// The operand that arithmetic with a number leaves as it is.
std::optional<ValueId> kept_operand(const Graph &graph, const Node &node) {
  if (node.inputs.size() != 2) return std::nullopt;
  for (const size_t at : {size_t{0}, size_t{1}}) {
    if (at == 1 && !(node.op->flags & op_flags::commutes)) break;
    const std::optional<Number> number = number_of_all(graph, node.inputs[1 - at]);
    if (number && keeps(node, *number)) return node.inputs[at];
  }
  return std::nullopt;
}

// Whether each number of `from` comes back unchanged from `to`.
bool holds_all(DType to, DType from) {
  const DTypeInfo &a = dtype_info(from), &b = dtype_info(to);
  if (a.is_float != b.is_float) return false;
  if (a.is_float) return size_of(from) >= 2 && (to == DType::f64 || (to == DType::f32 && size_of(from) == 2));
  if (from == DType::boolean) return true;
  return size_of(to) > size_of(from) && to != DType::boolean && (b.is_signed || !a.is_signed);
}

// What two nodes, one of the other's result, give back: its operand.
std::optional<ValueId> undone(const Graph &graph, const Node &node) {
  if (node.inputs.size() != 1) return std::nullopt;
  const Node &inner = *graph.find(node.inputs[0].node);
  if (inner.op != node.op || inner.inputs.size() != 1 || !may_go(inner, node)) return std::nullopt;
  if (is_any(node, {"neg", "not", "bit_not"})) return inner.inputs[0];
  if (is_any(node, {"convert"}) && holds_all(graph.type(node.inputs[0]).dtype, node.results[0].dtype))
    return inner.inputs[0];
  return std::nullopt;
}

// Of f(f(x)), which is f(x).
std::optional<ValueId> repeated(const Graph &graph, const Node &node) {
  if (node.inputs.size() != 1) return std::nullopt;
  const Node &inner = *graph.find(node.inputs[0].node);
  const bool is_twice = inner.op == node.op && is_any(node, {"abs", "ceil", "floor", "relu", "round", "sign", "trunc"});
  return is_twice && inner.attrs == node.attrs && !inner.annotations.contains(function_annotation)
             ? std::optional(node.inputs[0])
             : std::nullopt;
}

// The value that the node only gives again.
std::optional<ValueId> given_again(const Graph &graph, const Node &node) {
  if (node.inputs.empty()) return std::nullopt;
  if (is_any(node, {"convert"}) && graph.type(node.inputs[0]).dtype == node.results[0].dtype) return node.inputs[0];
  if (is_identity_view(graph, node)) return node.inputs[0];
  for (const auto find : {kept_operand, undone, repeated})
    if (const std::optional<ValueId> value = find(graph, node)) return value;
  return std::nullopt;
}

}  // namespace

Pass remove_no_ops_pass() {
  return replacing_pass("remove_no_ops", 1020, [](PassContext &context) -> MakeReplacement {
    return [&context](const Node &node, const OutputStorage &) -> Result<ValueId> {
      const Graph &graph = context.edit.view();
      const std::optional<ValueId> value = given_again(graph, node);
      const bool fits =
          value && graph.type(*value).same_value_type(node.results[0]) && may_go(node, *graph.find(value->node));
      return fits ? *value : ValueId();
    };
  });
}

}  // namespace kiln
