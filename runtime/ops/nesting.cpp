#include "runtime/ops/nesting.h"

#include <algorithm>
#include <cassert>
#include <set>

#include "runtime/ops/families.h"
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

Status check_symbol(InferContext &c, const std::string &name, const Dim &dim, const SymbolInfo &info) {
  KILN_TRY(require_at_most(c, info.min, dim, str_cat(info.min, " <= symbol '", name, "' of the graph")));
  if (info.max != i64_max)
    KILN_TRY(require_at_most(c, dim, info.max, str_cat("symbol '", name, "' of the graph <= ", info.max)));
  return c.require_equal(mod(dim, info.divisor), 0,
                         str_cat("symbol '", name, "' of the graph modulo ", info.divisor, " and 0"));
}

// Where element `turn` along dim lies in a sequence.
Walk walk_of(const RefTensor &sequence, size_t dim, size_t turn) {
  Walk walk{0, dense_strides(sequence.shape)};
  walk.begin = static_cast<int64_t>(turn) * walk.strides[dim];
  walk.strides.erase(walk.strides.begin() + static_cast<ptrdiff_t>(dim));
  return walk;
}
}  // namespace

Status Bindings::bind(InferContext &c, const Graph &graph, std::span<const TensorType> operands, size_t first) {
  if (!graph.parameters().empty())
    return c.fail("the graph has parameters; a nested graph takes all it uses as inputs");
  if (graph.inputs().size() != operands.size())
    return c.fail("the graph has ", graph.inputs().size(), " inputs, ", operands.size(), " operands are given");
  for (size_t k = 0; k < operands.size(); ++k) KILN_TRY(bind_input(c, *graph.find(graph.inputs()[k]), operands[k]));
  for (size_t k = 0; k < operands.size(); ++k) {
    const Node &input = *graph.find(graph.inputs()[k]);
    for (size_t d = 0; d < operands[k].rank(); ++d)
      KILN_TRY(c.require_equal(
          operands[k].dims[d], outside(input.results[0].dims[d]),
          str_cat("dim ", d, " of operand ", k + first, " and of the graph's input '", input.name, "'")));
  }
  for (const auto &[name, dim] : dims_) {
    auto found = graph.symbols().find(name);
    if (found != graph.symbols().end()) KILN_TRY(check_symbol(c, name, dim, found->second));
  }
  for (const Node &node : graph.nodes())
    for (const Equality &e : node.equalities)
      if (tells(e.left) && tells(e.right))  // of others the graph's own run is asked
        KILN_TRY(c.require_equal(outside(e.left), outside(e.right),
                                 str_cat("what node '", node.name, "' of the graph compares")));
  return {};
}

Result<std::vector<TensorType>> Bindings::outputs(const InferContext &c, const Graph &graph) const {
  std::vector<TensorType> types;
  for (const GraphOutput &output : graph.outputs()) {
    const TensorType &type = graph.type(output.value);
    Shape dims;
    for (const Dim &dim : type.dims) {
      if (!tells(dim))
        return c.fail("output '", output.name, "' of the graph is ", type.text(),
                      "; sizes that a node of a nested graph resolves cannot leave it");
      dims.push_back(outside(dim));
    }
    types.push_back(make_type(type.dtype, std::move(dims)));
  }
  return types;
}

bool Bindings::tells(const Dim &inside) const {
  std::set<std::string> used;
  inside.collect_symbols(used);
  return std::ranges::all_of(used, [&](const std::string &name) { return dims_.contains(name); });
}

Dim Bindings::outside(const Dim &inside) const {
  return inside.substitute([this](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() != Expr::Kind::symbol) return std::nullopt;
    auto found = dims_.find(leaf.symbol_name());
    return found == dims_.end() ? std::nullopt : std::optional<Expr>(found->second);
  });
}

Status Bindings::bind_input(InferContext &c, const Node &input, const TensorType &operand) {
  const TensorType &type = input.results[0];
  if (type.dtype != operand.dtype || type.rank() != operand.rank())
    return c.fail("the graph's input '", input.name, "' is ", type.text(), ", its operand is ", operand.text());
  for (size_t d = 0; d < type.rank(); ++d)
    if (type.dims[d].kind() == Expr::Kind::symbol) dims_.emplace(type.dims[d].symbol_name(), operand.dims[d]);
  return {};
}

Result<std::vector<TensorType>> infer_nested(InferContext &c, const Graph &graph,
                                             std::span<const TensorType> operands) {
  Bindings bindings;
  KILN_TRY(bindings.bind(c, graph, operands));
  return bindings.outputs(c, graph);
}

Status require_outputs(InferContext &c, std::string_view graph, std::span<const TensorType> found,
                       std::span<const TensorType> expected, std::string_view of_what) {
  if (found.size() != expected.size())
    return c.fail(graph, " has ", found.size(), " outputs, expected ", expected.size(), ": ", of_what);
  for (size_t k = 0; k < found.size(); ++k) {
    const TensorType &a = found[k], &b = expected[k];
    if (a.dtype != b.dtype || a.rank() != b.rank())
      return c.fail("output ", k, " of ", graph, " is ", a.text(), ", expected ", b.text(), ": ", of_what);
    for (size_t d = 0; d < a.rank(); ++d)
      KILN_TRY(c.require_equal(a.dims[d], b.dims[d],
                               str_cat("dim ", d, " of output ", k, " of ", graph, " and of ", of_what)));
  }
  return {};
}

Status require_row_major(InferContext &c, std::string_view attr) {
  const Graph &graph = *c.attr(attr).graph();
  for (uint32_t id : graph.inputs()) {
    const Node &input = *graph.find(id);
    if (input.results[0].strides != row_major_strides(input.results[0].dims))
      return c.fail("input '", input.name, "' of ", attr, " has strides; expected row-major");
  }
  return {};
}

bool takes_elements_apart(const Graph &graph) {
  std::set<uint32_t> given(graph.inputs().begin(), graph.inputs().end());  // nodes that depend on inputs
  for (const Node &node : graph.nodes()) {
    if (node.kind == Node::Kind::constant || given.contains(node.id)) continue;
    if (!node.op || !(family_of(op_of(node)) == "pointwise" || node.op->name == "convert" || node.op->name == "full"))
      return false;
    if (std::ranges::any_of(node.inputs, [&](ValueId input) { return given.contains(input.node); }))
      given.insert(node.id);
  }
  return std::ranges::all_of(graph.outputs(), [&](const GraphOutput &y) { return given.contains(y.value.node); });
}

Result<GraphPtr> side_by_side(const Graph &graph, size_t dims) {
  std::set<std::string> used;
  for (const Node &node : graph.nodes())
    for (const TensorType &type : node.results)
      for (const Dim &dim : type.dims) dim.collect_symbols(used);
  Shape front;
  for (size_t d = 0; d < dims; ++d) {
    std::string name = str_cat("beside", d);
    while (used.contains(name)) name += "_";
    front.push_back(Expr::symbol(name));
  }
  Edit edit;
  for (const auto &[name, info] : graph.symbols()) KILN_TRY(edit.declare_symbol(name, info));
  std::map<uint32_t, uint32_t> copies;
  for (const Node &node : graph.nodes()) {
    uint32_t &copy = copies[node.id];
    if (node.kind == Node::Kind::op) {
      std::vector<ValueId> operands;
      for (const ValueId x : node.inputs) operands.push_back({copies.at(x.node), x.output});
      KILN_ASSIGN(copy, edit.add(node.op, operands, node.attrs, node.name, node.annotations));
      continue;
    }
    ValueId made;
    if (node.kind == Node::Kind::constant) {
      KILN_ASSIGN(made, edit.constant(node.constant, node.name));
    } else {
      Shape shape = front;
      shape.insert(shape.end(), node.results[0].dims.begin(), node.results[0].dims.end());
      KILN_ASSIGN(made, edit.input(node.name, make_type(node.results[0].dtype, std::move(shape))));
    }
    copy = made.node;
  }
  std::vector<GraphOutput> outputs;
  for (const GraphOutput &y : graph.outputs()) outputs.push_back({y.name, {copies.at(y.value.node), y.value.output}});
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  return edit.finish();
}

TensorType element_of(const TensorType &sequence) {
  return make_type(sequence.dtype, Shape(sequence.dims.begin() + 1, sequence.dims.end()));
}

RefTensor element_at(const ReferenceContext &c, const RefTensor &sequence, size_t dim, size_t turn) {
  RefTensor element{sequence.dtype, sequence.shape, {}, {}};
  element.shape.erase(element.shape.begin() + static_cast<int64_t>(dim));
  sequence.native ? element.allocate_native() : element.allocate();
  (void)copy_walked(c, element.shape, sequence, walk_of(sequence, dim, turn), element,
                    {0, dense_strides(element.shape)});
  return element;
}
void set_element(const ReferenceContext &c, RefTensor &sequence, size_t dim, size_t turn, const RefTensor &element) {
  (void)copy_walked(c, element.shape, element, {0, dense_strides(element.shape)}, sequence,
                    walk_of(sequence, dim, turn));
}

std::vector<TensorType> one_of_each(const Shape &dims) {
  std::vector<TensorType> types;
  for (int number = 1; number <= dtype_count; ++number) types.push_back(make_type(static_cast<DType>(number), dims));
  return types;
}

GraphPtr small_graph(const std::vector<TensorType> &inputs, SmallNodes nodes, const std::vector<size_t> &outputs,
                     const AttrMap &last_attrs) {
  Edit edit;
  std::vector<ValueId> values;
  for (const TensorType &type : inputs) values.push_back(*edit.input(str_cat("x", values.size()), type));
  for (const auto &[op, operands] : nodes) {
    std::vector<ValueId> args;
    for (const size_t k : operands) args.push_back(values[k]);
    const bool is_last = values.size() + 1 == inputs.size() + nodes.size();
    const Result<uint32_t> id = edit.add(find_op(op), args, is_last ? last_attrs : AttrMap{});
    assert(id.ok());
    values.push_back({*id, 0});
  }
  std::vector<GraphOutput> named;
  for (const size_t k : outputs) named.push_back({str_cat("y", named.size()), values[k]});
  [[maybe_unused]] const Status set = edit.set_outputs(std::move(named));
  assert(set.ok());
  return *edit.finish();
}

}  // namespace kiln::ops
