#include "runtime/regions/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include "jit/base/kernel_args.h"
#include "runtime/ops/op.h"
#include "runtime/ops/reference.h"

namespace kiln {
namespace {

using kernel::BodyBuilder;
using kernel::Compute;

// A map over the axes of `dims`, with its body to be filled.
Compute empty_map(DType dtype, const Shape &dims) {
  Compute compute;
  compute.results[0].dtype = dtype;
  compute.dims = dims;
  return compute;
}

// KILN_ERROR_*: what a compute may set in the error word of a call.
uint32_t risks_of(const Compute &compute) {
  uint32_t bits = 0;
  if (compute.scatter && std::ranges::any_of(compute.scatter->index, &Expr::depends_on_value))
    bits |= KILN_ERROR_INDEX_OUT_OF_RANGE;
  for (const kernel::Value &value : compute.body.values) {
    if (value.op == kernel::Core::in_range) bits |= KILN_ERROR_INDEX_OUT_OF_RANGE;
    const bool divides = value.op == kernel::Core::div || value.op == kernel::Core::rem;
    if (divides && !dtype_info(value.type).is_float) bits |= KILN_ERROR_DIVISION_BY_ZERO;
    const bool indexes = kernel::reads_memory(value.op) &&
                         std::ranges::any_of(value.access.index, [](const Expr &e) { return e.depends_on_value(); });
    if (indexes) bits |= KILN_ERROR_INDEX_OUT_OF_RANGE;
  }
  return bits;
}

std::vector<Expr> axes_of(const Shape &dims) {
  std::vector<Expr> axes;
  for (const Dim &dim : dims) axes.push_back(Expr::axis(static_cast<uint32_t>(axes.size()), dim));
  return axes;
}

class Lowering {
 public:
  explicit Lowering(const Graph &graph) : graph_(graph) {}

  Result<Lowered> run() {
    for (uint32_t id : graph_.inputs()) out_.inputs.push_back(source(*graph_.find(id)));
    for (uint32_t id : graph_.parameters()) out_.parameters.push_back(source(*graph_.find(id)));
    find_replaced();
    for (const Node &node : graph_.nodes()) {
      Status status = lower_node(node);
      if (!status.ok()) return std::move(status).with_prefix(str_cat("lowering '", node.name, "': "));
    }
    for (const GraphOutput &output : graph_.outputs()) {
      const uint32_t tensor = dense(tensors_.at(output.value), output.name);
      out_.program.tensors[tensor].is_output = true;
      out_.outputs.push_back(tensor);
    }
    return std::move(out_);
  }

 private:
  Status lower_node(const Node &node) {
    switch (node.kind) {
      case Node::Kind::input:
      case Node::Kind::parameter:
        return {};  // are tensors already, in order of the signature
      case Node::Kind::constant:
        constant(node);
        return {};
      case Node::Kind::op:
        return node.op->flags & op_flags::mutates ? write_back(node) : op(node);
    }
    return {};
  }

  uint32_t add_tensor(DType dtype, const Shape &dims, const Shape &strides, bool prepared = false) {
    out_.program.tensors.push_back({dtype, dims, strides, false, prepared});
    return static_cast<uint32_t>(out_.program.tensors.size() - 1);
  }

  // What a copy_ writes into an input may be that input but for some elements, in one step or several.
  void find_replaced() {
    for (const Node &node : graph_.nodes()) {
      if (node.kind != Node::Kind::op || !(node.op->flags & op_flags::mutates)) continue;
      std::vector<uint32_t> steps;
      ValueId value = node.inputs[1];
      while (value != node.inputs[0]) {
        const Node &made_by = *graph_.find(value.node);
        if (made_by.kind != Node::Kind::op || !(made_by.op->flags & op_flags::replaces)) break;
        steps.push_back(made_by.id);
        value = made_by.inputs[0];
      }
      if (value == node.inputs[0]) replaced_.insert(steps.begin(), steps.end());
    }
  }

  // Whether the value is the input but for some elements, and lies as that does.
  bool is_made_of(ValueId value, ValueId input) const {
    if (!replaced_.contains(value.node)) return false;
    while (replaced_.contains(value.node)) value = graph_.find(value.node)->inputs[0];
    return value == input;
  }

  // A tensor that no compute makes. One whose size changes from call to call cannot take part in what is prepared once.
  uint32_t source(const Node &node) {
    const TensorType &type = node.results[0];
    const Shape strides = type.strides.size() == type.rank() ? type.strides : row_major_strides(type.dims);
    const bool prepared = node.kind != Node::Kind::input && std::ranges::none_of(type.dims, &Dim::depends_on_symbol);
    const uint32_t tensor = add_tensor(type.dtype, type.dims, strides, prepared);
    tensors_[{node.id, 0}] = tensor;
    return tensor;
  }

  // Gives the first of the result's tensors; the others follow it.
  uint32_t add_def(std::vector<uint32_t> operands, Compute compute, std::string_view node, std::string_view op) {
    const Shape strides = row_major_strides(compute.dims);
    return add_def(std::move(operands), std::move(compute), node, op, strides);
  }
  uint32_t add_def(std::vector<uint32_t> operands, Compute compute, std::string_view node, std::string_view op,
                   const Shape &strides) {
    std::vector<uint32_t> results;
    for (const Compute::Output &output : compute.results)
      results.push_back(add_tensor(output.dtype, compute.dims, strides));
    const uint32_t first = results[0];
    out_.program.defs.push_back({std::move(results), std::move(operands), std::move(compute), node, op});
    return first;
  }

  // A constant of one element is worth no memory: it becomes part of the kernels that read it.
  void constant(const Node &node) {
    if (node.constant->element_count() != 1) {
      out_.constants.push_back({source(node), node.constant});
      return;
    }
    Compute compute = empty_map(node.results[0].dtype, node.results[0].dims);
    BodyBuilder body(compute.body);
    const RefTensor value = to_reference(*node.constant);
    body.yield(value.is_float() ? body.constant(value.dtype, value.f[0])
                                : body.constant_bits(value.dtype, static_cast<uint64_t>(value.i[0])));
    tensors_[{node.id, 0}] = add_def({}, std::move(compute), node.name, "constant");
  }

  Status op(const Node &node) {
    const Op &op = op_of(node);
    const TensorType &result = node.results[0];
    for (const TensorType &other : node.results)
      if (other.dims != result.dims)
        return error(Code::unimplemented, "[", op.name, "] has results of different shapes, ", text_of(result.dims),
                     " and ", text_of(other.dims), "; lowering takes one shape");
    std::vector<TensorType> types;
    types.reserve(node.inputs.size());
    std::vector<uint32_t> operands;
    operands.reserve(node.inputs.size());
    for (ValueId input : node.inputs) {
      types.push_back(graph_.type(input));
      operands.push_back(tensors_.at(input));
    }
    Compute compute = empty_map(result.dtype, result.dims);
    for (size_t r = 1; r < node.results.size(); ++r)
      compute.results.push_back({node.results[r].dtype, static_cast<int32_t>(r)});
    if (op.view) {
      KILN_TRY(lower_view(node, types[0], compute));
    } else if (op.lower) {
      LowerContext context{
          op, types, result, node.attrs, compute, BodyBuilder(compute.body), replaced_.contains(node.id)};
      KILN_TRY(op.lower(context));
    } else {
      return error(Code::unimplemented, "[", op.name, "] has neither a view map nor a lowering for this backend");
    }
    const uint32_t risks = risks_of(compute);
    // An input's new value lies as that does.
    const Shape strides = replaced_.contains(node.id) ? strides_of(operands[0]) : strides_for(compute);
    const uint32_t first = add_def(std::move(operands), std::move(compute), node.name, op.name, strides);
    if (risks) out_.risks.push_back({static_cast<uint32_t>(out_.program.defs.size() - 1), risks});
    for (uint32_t r = 0; r < node.results.size(); ++r) tensors_[{node.id, r}] = first + r;
    return {};
  }

  // Row-major; elements that a point makes one array after another keep out of each other's way in caches: from one to
  // the next it is an odd number of cache lines (two thirds of the time where it would be a power of two).
  static Shape strides_for(const Compute &compute) {
    constexpr int64_t line = 64;
    Shape strides = row_major_strides(compute.dims);
    if (!compute.unrolls(0)) return strides;
    const auto elements = line / static_cast<int64_t>(size_of(compute.results[0].dtype));
    const Dim lines = ceil_div(strides[0], elements);
    strides[0] = (floor_div(lines, 2) * 2 + 1) * elements;
    return strides;
  }

  static Status lower_view(const Node &node, const TensorType &operand, Compute &compute) {
    const std::vector<Expr> index = axes_of(compute.dims);
    ViewContext context{op_of(node), operand, node.results[0], node.attrs, index, {}};
    KILN_TRY(op_of(node).view(context));
    BodyBuilder body(compute.body);
    body.yield(body.load(0, operand.dtype, std::move(context.operand_index)));
    compute.view = true;
    return {};
  }

  // copy_(dest, src) is src's tensor, which the plan may place in dest's memory; by dest's strides if it has others.
  Status write_back(const Node &node) {
    const Node &dest = *graph_.find(node.inputs[0].node);
    const auto input = std::ranges::find(graph_.inputs(), dest.id);
    if (input == graph_.inputs().end()) return invalid("[copy_] writes to '", dest.name, "', which is not an input");
    const uint32_t source = tensors_.at(node.inputs[1]), target = tensors_.at(node.inputs[0]);
    // Where there are other bytes between the input's elements, its new value is made of it, or is laid out anew: those
    // of another argument are not brought there.
    const bool may_be_source = is_dense(target) || is_made_of(node.inputs[1], node.inputs[0]);
    const uint32_t made = may_be_source ? by_strides(source, strides_of(target), node.name)
                                        : laid_out(source, strides_of(target), node.name);
    tensors_[{node.id, 0}] = made;
    out_.program.tensors[made].is_output = true;
    out_.write_backs.push_back({static_cast<uint32_t>(input - graph_.inputs().begin()), made, node.name});
    return {};
  }

  const Shape &strides_of(uint32_t tensor) const { return out_.program.tensors[tensor].strides; }

  // The tensor itself, or a row-major copy of it for the output of that name.
  uint32_t dense(uint32_t tensor, std::string_view output) {
    return by_strides(tensor, row_major_strides(out_.program.tensors[tensor].dims), output);
  }
  bool is_dense(uint32_t tensor) const {
    return strides_of(tensor) == row_major_strides(out_.program.tensors[tensor].dims);
  }
  uint32_t by_strides(uint32_t tensor, const Shape &strides, std::string_view node) {
    return strides_of(tensor) == strides ? tensor : laid_out(tensor, strides, node);
  }
  uint32_t laid_out(uint32_t tensor, Shape strides, std::string_view node) {  // by value: tensors are about to move
    const kernel::Tensor t = out_.program.tensors[tensor];
    Compute compute = empty_map(t.dtype, t.dims);
    BodyBuilder body(compute.body);
    body.yield(body.load(0, t.dtype, axes_of(t.dims)));
    compute.view = true;
    return add_def({tensor}, std::move(compute), node, "copy", strides);
  }

  const Graph &graph_;
  Lowered out_;
  std::map<ValueId, uint32_t> tensors_;
  std::set<uint32_t> replaced_;  // ids of the nodes that make an input's new value of the old one
};

}  // namespace

Result<Lowered> lower(const Graph &graph) { return Lowering(graph).run(); }

}  // namespace kiln
