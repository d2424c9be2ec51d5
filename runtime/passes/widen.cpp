#include <algorithm>
#include <map>

#include "runtime/ops/op.h"
#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

bool is_widened(const Graph &graph, const Node &node) {
  if (node.kind != Node::Kind::op || node.op->flags & (op_flags::view | op_flags::moves | op_flags::mutates))
    return false;
  return std::ranges::any_of(node.inputs, [&](ValueId v) { return is_small_float(graph.type(v).dtype); }) ||
         std::ranges::any_of(node.results, [](const TensorType &type) { return is_small_float(type.dtype); });
}

class Widening {
 public:
  Widening(const GraphPtr &graph, const OpTable &ops, bool round_all)
      : edit_(graph), convert_(ops.find("convert")), round_all_(round_all) {}

  // The node in its dtypes' `computes_as`, between conversions.
  Status widen(const Node &original) {
    edit_.push_scope(original.annotations, original.name);
    const Node node = *edit_.view().find(original.id);  // with the operands that it has by now
    std::vector<ValueId> operands;
    for (ValueId input : node.inputs) {
      KILN_ASSIGN(operands.emplace_back(), wide(input));
    }
    AttrMap attrs = node.attrs;
    for (auto &[name, value] : attrs)
      if (value.kind() == AttrKind::dtype && value.dtype() != DType::none)
        value = computed_in(name, value.dtype(), node);
    edit_.retire(node.id);  // errors of the one that takes its place name it
    KILN_ASSIGN(const uint32_t id, edit_.add(node.op, operands, std::move(attrs), node.name));
    for (uint32_t k = 0; k < node.results.size(); ++k) {
      KILN_ASSIGN(const ValueId result, converted({id, k}, node.results[k].dtype));
      if (!round_all_) unrounded_.emplace(result, ValueId{id, k});
      KILN_TRY(edit_.replace({node.id, k}, result));
    }
    return edit_.pop_scope();
  }

  // f32 of a small float. What is x's dtype unless it is given is what x's elements are converted to: f64 where f32
  // does not hold them, for they would be rounded on their way.
  DType computed_in(std::string_view attr, DType asked, const Node &node) const {
    const AttrDef &def = *node.op->find_attr(attr);
    if (is_small_float(asked) && !def.required && def.fallback == AttrValue(DType::none))
      if (const DType given = edit_.view().type(node.inputs[0]).dtype; size_of(given) > 4 || is_wide_integer(given))
        return DType::f64;
    return dtype_info(asked).computes_as;
  }
  static bool is_wide_integer(DType dtype) { return size_of(dtype) == 4 && !dtype_info(dtype).is_float; }

  Result<GraphPtr> finish() { return edit_.finish(false); }

 private:
  Result<ValueId> wide(ValueId value) {
    if (const auto known = unrounded_.find(value); known != unrounded_.end()) return known->second;
    return converted(value, dtype_info(edit_.view().type(value).dtype).computes_as);
  }
  Result<ValueId> converted(ValueId value, DType dtype) {
    if (edit_.view().type(value).dtype == dtype) return value;
    KILN_ASSIGN(const uint32_t id, edit_.add(convert_, {&value, 1}, {{"dtype", dtype}}));
    return ValueId{id, 0};
  }

  Edit edit_;
  const OpSchema *convert_;
  const bool round_all_;
  std::map<ValueId, ValueId> unrounded_;  // by what they are rounded to; empty where all is rounded
};

}  // namespace

Result<GraphPtr> widen(GraphPtr graph, const OpTable &ops, bool round_all) {
  const auto is_one = [&](const Node &node) { return is_widened(*graph, node); };
  if (std::ranges::none_of(graph->nodes(), is_one)) return graph;
  Widening widening(graph, ops, round_all);
  for (const Node &node : graph->nodes())
    if (is_one(node)) KILN_TRY(widening.widen(node).with_prefix(str_cat("widening '", node.name, "': ")));
  return widening.finish();
}

}  // namespace kiln
