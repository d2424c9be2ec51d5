#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/ops/op.h"
#include "runtime/ops/reference.h"
#include "runtime/passes/builtin.h"
#include "runtime/passes/number.h"
#include "runtime/passes/replacing.h"

namespace kiln {
namespace {

// Constants are in keys of pieces and in the artifact: small things.
constexpr int64_t most_elements = 4096;
// Of the operands and results of all nodes of a graph that are computed here.
constexpr int64_t most_work = int64_t{1} << 20;

// Elementwise ops whose results every backend gives to the bit: correctly rounded arithmetic, comparisons, logic, bits,
// choices and conversions.
constexpr std::array<std::string_view, 37> exact = {
    "abs",        "add",         "and",     "bit_and", "bit_not", "bit_or", "bit_xor",  "ceil",  "clamp", "convert",
    "copysign",   "div",         "eq",      "floor",   "ge",      "gt",     "isfinite", "isinf", "isnan", "le",
    "lt",         "maximum",     "minimum", "mul",     "ne",      "neg",    "not",      "or",    "relu",  "round",
    "shift_left", "shift_right", "sign",    "sub",     "trunc",   "where",  "xor"};
// Ops that put elements elsewhere.
constexpr std::array<std::string_view, 12> moving = {"clone",  "concat",       "diagonal", "flip",
                                                     "gather", "index_select", "permute",  "reshape",
                                                     "slice",  "squeeze",      "stack",    "unsqueeze"};
static_assert(std::ranges::is_sorted(exact) && std::ranges::is_sorted(moving));

bool is_among(std::span<const std::string_view> names, const Node &node) {
  return std::ranges::binary_search(names, node.op->name);
}

// What the op gives for these operands; null where it is an error, which the call is to make.
Result<TensorPtr> computed(const Node &node, std::span<const TensorPtr> operands) {
  Edit edit;
  std::vector<ValueId> inputs;
  for (const TensorPtr &operand : operands) {
    KILN_ASSIGN(inputs.emplace_back(), edit.constant(operand));
  }
  KILN_ASSIGN(const uint32_t id, edit.add(node.op, inputs, node.attrs));
  KILN_TRY(edit.set_outputs({{"y", {id, 0}}}));
  KILN_ASSIGN(const GraphPtr graph, edit.finish(false));
  const Result<std::vector<RefTensor>> results = run_reference(*graph, {});
  if (!results.ok()) return TensorPtr();
  TensorData made = from_reference(results->front());
  const RefTensor &y = results->front();
  if (y.is_float() && std::ranges::any_of(to_reference(made).f, [](double x) { return std::isnan(x); }))
    return TensorPtr();  // of which there are many
  return std::make_shared<const TensorData>(std::move(made));
}

// More than any constant may have: not all dims are integers.
int64_t elements_of(const Shape &dims) {
  const bool is_known = std::ranges::all_of(dims, [](const Dim &dim) { return dim.is_integer(); });
  return is_known ? product_of(dims).integer() : INT64_MAX;
}

TensorPtr tensor_of(const Number &number, const Shape &dims) {
  RefTensor tensor{.dtype = number.dtype, .shape = {}, .f = {}, .i = {}};
  for (const Dim &dim : dims) tensor.shape.push_back(dim.integer());
  tensor.allocate();
  std::ranges::fill(tensor.f, number.f);
  std::ranges::fill(tensor.i, number.i);
  return std::make_shared<TensorData>(from_reference(tensor));
}

class Folding {
 public:
  explicit Folding(PassContext &context) : edit_(context.edit), full_(context.ops.find("full")) {}

  // Where all operands are numbers or constants: what takes the node's place.
  Result<ValueId> fold(const Node &node, const OutputStorage &outputs) {
    is_output_ = outputs.holds({node.id, 0});
    if (node.inputs.empty() || !may_go(node, node_without_marks_)) return ValueId();
    const bool is_exact = is_among(exact, node);
    if (!is_exact && !is_among(moving, node)) return ValueId();
    bool all_numbers = is_exact;
    std::vector<std::optional<Number>> numbers;
    for (const ValueId input : node.inputs) {
      numbers.push_back(number_of_all(edit_.view(), input));
      if (!numbers.back() && !edit_.view().find(input.node)->constant) return ValueId();
      all_numbers = all_numbers && numbers.back();
    }
    return all_numbers ? fold_numbers(node, numbers) : fold_tensors(node, numbers);
  }

 private:
  Result<ValueId> fold_numbers(const Node &node, std::span<const std::optional<Number>> numbers) {
    if (++work_ > most_work) return ValueId();
    std::vector<TensorPtr> operands;
    for (const std::optional<Number> &number : numbers) operands.push_back(tensor_of(*number, {}));
    KILN_ASSIGN(const TensorPtr made, computed(node, operands));
    return made ? put(node, made) : Result<ValueId>(ValueId());
  }

  // The elements of what is a constant, or is all one number; null: they are too many, or nobody knows how many.
  TensorPtr tensor_of_value(ValueId value, const std::optional<Number> &number) {
    const Node &node = *edit_.view().find(value.node);
    const Shape &dims = node.results[value.output].dims;
    if (node.constant || !number) return node.constant;
    if (elements_of(dims) > most_elements) return nullptr;
    return tensor_of(*number, dims);
  }

  Result<ValueId> fold_tensors(const Node &node, std::span<const std::optional<Number>> numbers) {
    int64_t work = elements_of(node.results[0].dims);
    if (work > most_elements) return ValueId();
    std::vector<TensorPtr> operands;
    for (size_t i = 0; i < numbers.size(); ++i) {
      operands.push_back(tensor_of_value(node.inputs[i], numbers[i]));
      if (!operands.back()) return ValueId();
      work += operands.back()->element_count();
    }
    if (work_ + work > most_work) return ValueId();
    work_ += work;
    KILN_ASSIGN(const TensorPtr made, computed(node, operands));
    return made ? put(node, made) : Result<ValueId>(ValueId());
  }

  // Of one number a full, which is smaller and may be an output; else a constant, which may not.
  Result<ValueId> put(const Node &node, const TensorPtr &made) {
    const std::optional<Number> number = number_of_all(*made);
    if (const auto attrs = number ? filled_with(*number, node.results[0].dims) : std::nullopt)
      return replacement(edit_, node, full_, {}, *attrs);
    if (is_output_ || made->shape.size() != node.results[0].rank()) return ValueId();
    const std::string name = node.name;
    edit_.retire(node.id);
    KILN_ASSIGN(const ValueId value, edit_.constant(made, name));
    return value;
  }

  Edit &edit_;
  const OpSchema *full_;
  const Node node_without_marks_ = {};
  int64_t work_ = 0;
  bool is_output_ = false;  // the node that is being folded, or what lies in it
};

}  // namespace

Pass fold_constants_pass() {
  return replacing_pass("fold_constants", 1010, [](PassContext &context) -> MakeReplacement {
    return [folding = std::make_shared<Folding>(context)](const Node &node, const OutputStorage &outputs) {
      return folding->fold(node, outputs);
    };
  });
}

}  // namespace kiln
