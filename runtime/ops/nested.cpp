// Ops whose attribute is a graph.
#include <cassert>

#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

// What a nested graph's symbols are, in terms of the caller's: the dims of the operands that bind them.
class Bindings {
 public:
  // Binds by the bare dims of the inputs, then checks all dims, symbol properties and equalities.
  Status bind(InferContext &c, const Graph &graph) {
    for (size_t k = 0; k < c.inputs.size(); ++k) KILN_TRY(bind_input(c, *graph.find(graph.inputs()[k]), c.inputs[k]));
    for (size_t k = 0; k < c.inputs.size(); ++k) {
      const Node &input = *graph.find(graph.inputs()[k]);
      for (size_t d = 0; d < c.inputs[k].rank(); ++d)
        KILN_TRY(
            c.require_equal(c.inputs[k].dims[d], outside(input.results[0].dims[d]),
                            str_cat("dim ", d, " of operand ", k, " and of the graph's input '", input.name, "'")));
    }
    for (const auto &[name, dim] : dims_) {
      auto found = graph.symbols().find(name);
      if (found != graph.symbols().end()) KILN_TRY(check_symbol(c, name, dim, found->second));
    }
    for (const Node &node : graph.nodes())
      for (const Equality &e : node.equalities)
        KILN_TRY(c.require_equal(outside(e.left), outside(e.right),
                                 str_cat("what node '", node.name, "' of the graph compares")));
    return {};
  }

  Dim outside(const Dim &inside) const {
    return inside.substitute([this](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() != Expr::Kind::symbol) return std::nullopt;
      auto found = dims_.find(leaf.symbol_name());
      return found == dims_.end() ? std::nullopt : std::optional<Expr>(found->second);
    });
  }

 private:
  Status bind_input(InferContext &c, const Node &input, const TensorType &operand) {
    const TensorType &type = input.results[0];
    if (type.dtype != operand.dtype || type.rank() != operand.rank())
      return c.fail("the graph's input '", input.name, "' is ", type.text(), ", its operand is ", operand.text());
    for (size_t d = 0; d < type.rank(); ++d)
      if (type.dims[d].kind() == Expr::Kind::symbol) dims_.emplace(type.dims[d].symbol_name(), operand.dims[d]);
    return {};
  }

  static Status check_symbol(InferContext &c, const std::string &name, const Dim &dim, const SymbolInfo &info) {
    KILN_TRY(require_at_most(c, info.min, dim, str_cat(info.min, " <= symbol '", name, "' of the graph")));
    if (info.max != i64_max)
      KILN_TRY(require_at_most(c, dim, info.max, str_cat("symbol '", name, "' of the graph <= ", info.max)));
    return c.require_equal(mod(dim, info.divisor), 0,
                           str_cat("symbol '", name, "' of the graph modulo ", info.divisor, " and 0"));
  }

  std::map<std::string, Dim> dims_;
};

Status infer_call(InferContext &c) {
  const Graph &graph = *c.attr("graph").graph();
  if (!graph.parameters().empty())
    return c.fail("the graph has parameters; a nested graph takes all it uses as inputs");
  if (graph.inputs().size() != c.inputs.size())
    return c.fail("the graph has ", graph.inputs().size(), " inputs, ", c.inputs.size(), " operands are given");
  Bindings bindings;
  KILN_TRY(bindings.bind(c, graph));
  for (const GraphOutput &output : graph.outputs()) {
    const TensorType &type = graph.type(output.value);
    Shape dims;
    for (const Dim &dim : type.dims) dims.push_back(bindings.outside(dim));
    c.results.push_back(make_type(type.dtype, std::move(dims)));
  }
  return {};
}

Status reference_call(ReferenceContext &c) {
  KILN_ASSIGN(std::vector<RefTensor> results, c.run_graph(*c.attr("graph").graph(), c.inputs));
  std::move(results.begin(), results.end(), c.results.begin());
  return {};
}

// (x [rows, 2n], y [2n]) -> (silu(x) * y, the row sums of it)
Result<GraphPtr> sample_graph() {
  Edit edit;
  const Dim width = 2 * sym("n");
  KILN_ASSIGN(ValueId n, edit.input("sizes", i64({sym("n")})));
  KILN_ASSIGN(ValueId x, edit.input("x", f32({sym("rows"), width})));
  KILN_ASSIGN(ValueId y, edit.input("y", f32({width})));
  auto add = [&](std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {}) -> Result<ValueId> {
    KILN_ASSIGN(uint32_t id, edit.add(find_op(op), inputs, std::move(attrs)));
    return ValueId{id, 0};
  };
  KILN_ASSIGN(ValueId active, add("silu", {x}));
  KILN_ASSIGN(ValueId scaled, add("mul", {active, y}));
  KILN_ASSIGN(ValueId sums, add("sum", {scaled}, {{"dims", ints({1})}}));
  KILN_ASSIGN(ValueId count, add("sum", {n}));
  KILN_TRY(edit.set_outputs({{"scaled", scaled}, {"sums", sums}, {"count", count}}));
  return edit.finish();
}

// x0, x1, ...: an input of each type, and each transposed.
Result<GraphPtr> graph_of_all_types() {
  Edit edit;
  std::vector<GraphOutput> outputs;
  for (int number = 1; number <= dtype_count; ++number) {
    const TensorType type = make_type(static_cast<DType>(number), {2, 3});
    KILN_ASSIGN(const ValueId x, edit.input(str_cat("x", number), type));
    KILN_ASSIGN(const uint32_t y, edit.add(find_op("permute"), {&x, 1}, {{"dims", ints({1, 0})}}));
    outputs.push_back({str_cat("y", number), {y, 0}});
  }
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  return edit.finish();
}

void samples_call(SampleSink &out) {
  Result<GraphPtr> graph = sample_graph();
  assert(graph.ok());
  const Dim m = sym("m");
  out.push_back({.name = "literal", .inputs = {i64({4}), f32({3, 8}), f32({8})}, .attrs = {{"graph", *graph}}});
  out.push_back({.name = "symbolic",
                 .inputs = {i64({m + 1}), f32({m, 2 * m + 2}), f32({2 * m + 2})},
                 .attrs = {{"graph", *graph}},
                 .sizes = {{"m", 7}}});
  graph = graph_of_all_types();
  assert(graph.ok());
  out.push_back({.name = "all_types", .attrs = {{"graph", *graph}}});
  for (int number = 1; number <= dtype_count; ++number)
    out.back().inputs.push_back(make_type(static_cast<DType>(number), {2, 3}));
}

const Op records[] = {
    {{.name = "call",
      .doc = "The outputs of a graph at these operands. It is inlined before anything is compiled.",
      .flags = op_flags::moves,
      .args = {{"args", "the graph's inputs, in order", any_type, Arity::variadic, /*same_dtype=*/false}},
      .attrs = {{.name = "graph", .doc = "what is called", .kind = AttrKind::graph, .required = true}},
      .infer = infer_call},
     {.reference = reference_call, .samples = samples_call}},
};

}  // namespace

std::span<const Op> nested_ops() { return records; }

}  // namespace kiln::ops
