#include "runtime/passes/number.h"

#include <bit>
#include <cstring>

#include "runtime/graph/annotations.h"
#include "runtime/ops/filling.h"
#include "runtime/ops/reference.h"
#include "runtime/passes/replacing.h"

namespace kiln {
namespace {

// From the encoding of ops/filling.h, which does not round to f32.
Number decoded(DType dtype, uint64_t bits) {
  Number number{.dtype = dtype};
  if (number.is_float())
    number.f = dtype == DType::f32 ? static_cast<float>(std::bit_cast<double>(bits)) : std::bit_cast<double>(bits);
  else
    number.i = std::bit_cast<int64_t>(bits);
  return number;
}

std::optional<Number> number_of(const Node &node) {
  const DType dtype = node.results[0].dtype;
  if (node.constant) return number_of_all(*node.constant);
  if (!node.op || node.annotations.contains(function_annotation)) return std::nullopt;
  if (node.op->name == "size") {
    const Dim &size = node.attrs.find("value")->second.dim();
    if (!size.is_integer() || dtype != DType::i64) return std::nullopt;
    return Number{.dtype = dtype, .i = size.integer()};
  }
  if (node.op->name != "full") return std::nullopt;
  const std::optional<uint64_t> bits = ops::filling(node.attrs, dtype);
  return bits ? std::optional(decoded(dtype, *bits)) : std::nullopt;
}

}  // namespace

std::optional<Number> number_of_all(const TensorData &tensor) {
  const size_t element = size_of(tensor.dtype), size = tensor.bytes.size();
  if (size < element || element == 0) return std::nullopt;
  if (std::memcmp(tensor.bytes.data(), tensor.bytes.data() + element, size - element) != 0) return std::nullopt;
  const RefTensor first =
      to_reference({tensor.dtype, {1}, Bytes(tensor.bytes.begin(), tensor.bytes.begin() + element)});
  Number number{.dtype = tensor.dtype};
  if (number.is_float())
    number.f = first.f[0];
  else
    number.i = first.i[0];
  return number;
}

std::optional<Number> number_of_all(const Graph &graph, ValueId value) {
  constexpr int most_views = 8;                // so that chains of them are not walked again at each of their nodes
  const auto is_view = [](const Node &node) {  // what a function of the host's makes of them is its own matter
    return node.op && node.op->flags & op_flags::view && !node.annotations.contains(function_annotation);
  };
  const Node *node = graph.find(value.node);
  for (int i = 0; i < most_views && is_view(*node); ++i) node = graph.find(node->inputs[0].node);
  return number_of(*node);
}

std::optional<AttrMap> filled_with(const Number &number, const Shape &shape) {
  AttrMap attrs{{"dtype", number.dtype}, {"shape", AttrValue(shape)}};
  constexpr int64_t longest = int64_t{1} << 53;  // that a double holds
  const bool in_digits = !number.is_float() && (number.i > longest || number.i < -longest);
  attrs.emplace("value", AttrValue(number.is_float() ? number.f : in_digits ? 0.0 : static_cast<double>(number.i)));
  attrs.emplace("exact", AttrValue(in_digits ? ops::digits_of(number.i, number.dtype) : std::string()));
  const std::optional<uint64_t> made = ops::filling(attrs, number.dtype);
  if (!made) return std::nullopt;
  const Number held = decoded(number.dtype, *made);
  const bool is_it =
      number.is_float() ? std::bit_cast<uint64_t>(held.f) == std::bit_cast<uint64_t>(number.f) : held.i == number.i;
  return is_it ? std::optional(std::move(attrs)) : std::nullopt;
}

Result<ValueId> replacement_by_number(Edit &edit, const OpTable &ops, const Node &of, std::string_view op, ValueId x,
                                      double number) {
  const Node was = of;  // which ends with the first change
  const auto attrs = filled_with({.dtype = was.results[0].dtype, .f = number}, {});
  if (!attrs) return ValueId();
  KILN_ASSIGN(const uint32_t full, edit.add(ops.find("full"), {}, *attrs));
  return replacement(edit, was, ops.find(op), {{x, {full, 0}}}, {});
}

}  // namespace kiln
