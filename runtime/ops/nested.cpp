// Ops whose attributes are graphs.
#include "runtime/ops/nested.h"

#include <algorithm>
#include <cassert>
#include <set>

#include "runtime/ops/attention.h"
#include "runtime/ops/nesting.h"

namespace kiln::ops {
namespace {

Status infer_call(InferContext &c) {
  KILN_ASSIGN(c.results, infer_nested(c, *c.attr("graph").graph(), c.inputs));
  return {};
}

Status infer_cond(InferContext &c) {
  if (c.inputs[0].rank() != 0) return c.fail("predicate is ", c.inputs[0].text(), ", expected bool[]");
  for (std::string_view attr : {"then_graph", "else_graph"}) {
    const Graph &graph = *c.attr(attr).graph();
    KILN_TRY(require_row_major(c, attr));
    Bindings bindings;
    KILN_TRY(bindings.bind(c, graph, c.inputs.subspan(1), 1));
    KILN_ASSIGN(std::vector<TensorType> outputs, bindings.outputs(c, graph));
    if (attr == "then_graph")
      c.results = std::move(outputs);
    else
      KILN_TRY(require_outputs(c, attr, outputs, c.results, "then_graph's"));
  }
  return {};
}

size_t carried_of(const AttrMap &attrs, size_t operands) {
  const int64_t carried = attrs.find("carried")->second.i64();
  return carried < 0 ? operands : static_cast<size_t>(carried);
}

Status infer_while(InferContext &c) {
  if (const int64_t carried = c.attr("carried").i64(); carried < -1 || carried > static_cast<int64_t>(c.inputs.size()))
    return c.fail("carried is ", carried, ", expected -1 or at most the ", c.inputs.size(), " operands");
  if (const int64_t turns = c.attr("max_turns").i64(); turns < -1)
    return c.fail("max_turns is ", turns, ", expected at least 0, or -1: no bound");
  const size_t carried = carried_of(c.attrs, c.inputs.size());
  for (std::string_view attr : {"cond_graph", "body_graph"}) {
    const Graph &graph = *c.attr(attr).graph();
    KILN_TRY(require_row_major(c, attr));
    KILN_ASSIGN(const std::vector<TensorType> outputs, infer_nested(c, graph, c.inputs));
    if (attr == "cond_graph") {
      const TensorType predicate = make_type(DType::boolean, {});
      KILN_TRY(require_outputs(c, attr, outputs, {&predicate, 1}, "a condition"));
    } else {
      KILN_TRY(require_outputs(c, attr, outputs, c.inputs.first(carried), "the carried operands"));
    }
  }
  for (const TensorType &type : c.inputs.first(carried)) c.results.push_back(make_type(type.dtype, type.dims));
  return {};
}

Status reference_call(ReferenceContext &c) {
  KILN_ASSIGN(std::vector<RefTensor> results, c.run_graph(*c.attr("graph").graph(), c.inputs));
  std::move(results.begin(), results.end(), c.results.begin());
  return {};
}

Status reference_cond(ReferenceContext &c) {
  const std::string_view taken = ReadElements<int64_t>(*c.inputs[0])[0] != 0 ? "then_graph" : "else_graph";
  KILN_ASSIGN(std::vector<RefTensor> results, c.run_graph(*c.attr(taken).graph(), c.inputs.subspan(1)));
  std::move(results.begin(), results.end(), c.results.begin());
  return {};
}

Status reference_while(ReferenceContext &c) {
  const size_t carried = carried_of(c.attrs, c.inputs.size());
  std::vector<RefTensor> state;
  for (const RefTensor *operand : c.inputs.first(carried)) state.push_back(*operand);
  std::vector<const RefTensor *> now(c.inputs.begin(), c.inputs.end());
  const int64_t most = c.attr("max_turns").i64();
  for (int64_t turn = 0; turn != most;) {
    for (size_t k = 0; k < carried; ++k) now[k] = &state[k];
    KILN_ASSIGN(const std::vector<RefTensor> go_on, c.run_graph(*c.attr("cond_graph").graph(), now));
    if (ReadElements<int64_t>(go_on[0])[0] == 0) break;
    KILN_ASSIGN(state, c.run_graph(*c.attr("body_graph").graph(), now));
    KILN_TRY(c.on_turn(++turn));
  }
  std::move(state.begin(), state.end(), c.results.begin());
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

// An input of each type, and each transposed.
Result<GraphPtr> graph_of_all_types() {
  Edit edit;
  std::vector<GraphOutput> outputs;
  for (const TensorType &type : one_of_each({2, 3})) {
    const std::string name(name_of(type.dtype));
    KILN_ASSIGN(const ValueId x, edit.input("x_" + name, type));
    KILN_ASSIGN(const uint32_t y, edit.add(find_op("permute"), {&x, 1}, {{"dims", ints({1, 0})}}));
    outputs.push_back({"y_" + name, {y, 0}});
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
  out.push_back({.name = "all_types", .inputs = one_of_each({2, 3}), .attrs = {{"graph", *graph}}});
}

// (x [n], y [n]) -> (x * y or x / y, the sum of x or of y)
Result<GraphPtr> branch_graph(std::string_view op, size_t summed) {
  Edit edit;
  std::vector<ValueId> args;
  for (std::string_view name : {"x", "y"}) {
    KILN_ASSIGN(args.emplace_back(), edit.input(name, f32({sym("n")})));
  }
  KILN_ASSIGN(const uint32_t both, edit.add(find_op(op), args));
  KILN_ASSIGN(const uint32_t sum, edit.add(find_op("sum"), {{args[summed]}}));
  KILN_TRY(edit.set_outputs({{"both", {both, 0}}, {"sum", {sum, 0}}}));
  return edit.finish();
}

// What it is given. `more`: a bool comes first, which becomes false (turn), or is all that is yielded (go_on).
enum class Passing : uint8_t { all, turn, go_on };
Result<GraphPtr> passing_graph(Passing what) {
  Edit edit;
  std::vector<GraphOutput> outputs;
  if (what != Passing::all) {
    KILN_ASSIGN(const ValueId more, edit.input("more", make_type(DType::boolean, {})));
    KILN_ASSIGN(const uint32_t no, edit.add(find_op("not"), {&more, 1}));
    outputs.push_back({"more", what == Passing::turn ? ValueId{no, 0} : more});
  }
  for (const TensorType &type : one_of_each({3})) {
    const std::string name(name_of(type.dtype));
    KILN_ASSIGN(const ValueId input, edit.input(name, type));
    if (what != Passing::go_on) outputs.push_back({name, input});
  }
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  return edit.finish();
}

void samples_cond(SampleSink &out) {
  Result<GraphPtr> then_graph = branch_graph("mul", 0), else_graph = branch_graph("sub", 1);
  assert(then_graph.ok() && else_graph.ok());
  const AttrMap attrs = {{"then_graph", *then_graph}, {"else_graph", *else_graph}};
  const TensorType predicate = make_type(DType::boolean, {});
  for (const bool taken : {true, false}) {
    const std::string name = taken ? "then" : "else";
    const std::map<size_t, TensorData> given = {{0, {DType::boolean, {}, {static_cast<uint8_t>(taken)}}}};
    out.push_back({.name = name, .inputs = {predicate, f32({5}), f32({5})}, .attrs = attrs, .given = given});
    out.push_back({.name = name + "_symbolic",
                   .inputs = {predicate, f32({sym("m")}), f32({sym("m")})},
                   .attrs = attrs,
                   .sizes = {{"m", 70}},
                   .given = given});
  }
  Result<GraphPtr> passing = passing_graph(Passing::all);
  assert(passing.ok());
  std::vector<TensorType> inputs = one_of_each({3});
  inputs.insert(inputs.begin(), predicate);
  out.push_back({.name = "every_dtype",
                 .inputs = std::move(inputs),
                 .attrs = {{"then_graph", *passing}, {"else_graph", *passing}}});
}

// i [], x [n], step [n]: while i > 0, (i - 1, x + step).
Result<GraphPtr> turn_graph(bool body) {
  Edit edit;
  KILN_ASSIGN(const ValueId i, edit.input("i", i64({})));
  KILN_ASSIGN(const ValueId x, edit.input("x", f32({sym("n")})));
  KILN_ASSIGN(const ValueId step, edit.input("step", f32({sym("n")})));
  auto number = [&](double value) -> Result<ValueId> {
    KILN_ASSIGN(const uint32_t id, edit.add(find_op("full"), {},
                                            {{"value", value}, {"dtype", DType::i64}, {"shape", AttrValue(Shape{})}}));
    return ValueId{id, 0};
  };
  if (!body) {
    KILN_ASSIGN(const ValueId zero, number(0));
    KILN_ASSIGN(const uint32_t more, edit.add(find_op("gt"), {{i, zero}}));
    KILN_TRY(edit.set_outputs({{"more", {more, 0}}}));
    return edit.finish();
  }
  KILN_ASSIGN(const ValueId one, number(1));
  KILN_ASSIGN(const uint32_t next, edit.add(find_op("sub"), {{i, one}}));
  KILN_ASSIGN(const uint32_t moved, edit.add(find_op("add"), {{x, step}}));
  KILN_TRY(edit.set_outputs({{"i", {next, 0}}, {"x", {moved, 0}}}));
  return edit.finish();
}

void samples_while(SampleSink &out) {
  Result<GraphPtr> cond_graph = turn_graph(false), body_graph = turn_graph(true);
  assert(cond_graph.ok() && body_graph.ok());
  const auto sample = [&](std::string name, int64_t turns, int64_t most) {
    AttrMap attrs = {{"cond_graph", *cond_graph}, {"body_graph", *body_graph}, {"carried", 2}};
    if (most >= 0) attrs["max_turns"] = most;
    out.push_back({.name = std::move(name),
                   .inputs = {i64({}), f32({sym("m")}), f32({sym("m")})},
                   .attrs = std::move(attrs),
                   .sizes = {{"m", 7}},
                   .given = {{0, i64_data({}, {turns})}}});
  };
  for (const int64_t turns : {0, 1, 2, 5})  // an odd and an even number: results end in other memory
    sample(str_cat("turns_", turns), turns, -1);
  sample("at_most_0", 2, 0);
  sample("at_most_3", 5, 3);
  sample("at_most_as_many", 2, 2);
  sample("less_than_at_most", 1, 4);
  Result<GraphPtr> go_on = passing_graph(Passing::go_on), turn = passing_graph(Passing::turn);
  assert(go_on.ok() && turn.ok());
  std::vector<TensorType> inputs = one_of_each({3});
  inputs.insert(inputs.begin(), make_type(DType::boolean, {}));
  out.push_back({.name = "every_dtype",
                 .inputs = std::move(inputs),
                 .attrs = {{"cond_graph", *go_on}, {"body_graph", *turn}},
                 .given = {{0, {DType::boolean, {}, {1}}}}});
}

const Op nested_records[] = {
    {{.name = "call",
      .doc = "The outputs of a graph at these operands. Passes see the graph; it is inlined after them.",
      .flags = op_flags::moves | op_flags::carries_effects,
      .args = {{"args", "the graph's inputs, in order", any_value, Arity::variadic, /*same_dtype=*/false}},
      .attrs = {{.name = "graph", .doc = "what is called", .kind = AttrKind::graph, .required = true}},
      .infer = infer_call},
     {.reference = reference_call, .gradient = by_rule("args"), .samples = samples_call}},
    {{.name = "cond",
      .doc = "The outputs of then_graph if the predicate is true, else of else_graph, at these operands. Only the one "
             "runs. Both take all operands, and their outputs have the same types.",
      .flags = op_flags::moves | op_flags::control | op_flags::carries_effects,
      .args = {{"predicate", "a scalar", dtypes(DType::boolean), Arity::one, /*same_dtype=*/false},
               {"args", "both graphs' inputs, in order", any_value, Arity::variadic, /*same_dtype=*/false}},
      .attrs = {{.name = "then_graph", .doc = "what runs if it is true", .kind = AttrKind::graph, .required = true},
                {.name = "else_graph", .doc = "what runs if it is false", .kind = AttrKind::graph, .required = true}},
      .infer = infer_cond},
     {.reference = reference_cond, .gradient = by_rule("args"), .samples = samples_cond}},
    {{.name = "while",
      .doc =
          "As long as cond_graph gives true, and for at most max_turns turns, body_graph's outputs take the place of "
          "the carried operands; the result is what these are then. Both graphs take all operands; those that are not "
          "carried stay what they are. "
          "The types of the carried ones stay, too.",
      .flags = op_flags::moves | op_flags::control | op_flags::carries_effects,
      .args = {{"args", "both graphs' inputs, in order; the carried ones first", any_value, Arity::variadic,
                /*same_dtype=*/false}},
      .attrs = {{.name = "cond_graph", .doc = "one output, bool[]: go on?", .kind = AttrKind::graph, .required = true},
                {.name = "body_graph", .doc = "one turn", .kind = AttrKind::graph, .required = true},
                {.name = "carried", .doc = "how many are; -1: all", .kind = AttrKind::i64, .fallback = -1},
                {.name = "max_turns",
                 .doc = "after which it ends, whatever cond_graph would give; -1: nothing bounds them",
                 .kind = AttrKind::i64,
                 .fallback = -1}},
      .infer = infer_while},
     {.reference = reference_while,
      .gradient = by_rule_if_given(
          "max_turns", "args", "nothing bounds its turns, so that there is no room to keep what each of them computed"),
      .samples = samples_while}},
};

}  // namespace

std::span<const Op> nested_ops() { return nested_records; }

}  // namespace kiln::ops

namespace kiln {

std::vector<std::pair<std::string_view, GraphPtr>> nested_graphs(const Node &node) {
  std::vector<std::pair<std::string_view, GraphPtr>> graphs;
  for (const auto &[name, value] : node.attrs)
    if (value.kind() == AttrKind::graph && value.size()) graphs.emplace_back(name, value.graph());
  return graphs;
}

std::optional<uint32_t> operand_given(const Node &node, std::string_view attr, uint32_t input) {
  const std::string_view op = node.op->name;
  uint32_t changing = 0;  // operands that come first
  if (op == "while") {
    changing = static_cast<uint32_t>(ops::carried_of(node.attrs, node.inputs.size()));
  } else if (op == "scan") {
    const ScanOperands operands = scan_operands(node.attrs, node.inputs.size());
    changing = operands.carried + operands.sequences;
  } else if (op == "attention") {
    const uint32_t made = ops::made_inputs(attr);
    return input < made ? std::nullopt : std::optional(input - made + ops::first_captured);
  } else if (op == "custom_function" && attr == "backward_graph") {
    return std::nullopt;
  } else if (!is_call(node) && op != "cond") {
    return std::nullopt;
  }
  if (input < changing) return std::nullopt;
  return operand_of_input(node, input);
}

Dim dim_of_input(const Graph &graph, const Node &node, uint32_t input, uint32_t dim) {
  const Shape &dims = graph.type(node.inputs[operand_of_input(node, input)]).dims;
  if (node.op->name != "scan") return dims[dim];
  const ScanOperands operands = scan_operands(node.attrs, node.inputs.size());
  const bool is_element = input >= operands.carried && input < operands.carried + operands.sequences;
  return dims[dim + is_element];
}

namespace {

bool resolves(const Graph &graph, std::set<const Graph *> &seen) {
  if (!seen.insert(&graph).second) return false;
  return std::ranges::any_of(graph.nodes(), [&](const Node &node) {
    return !node.symbols.empty() || (is_call(node) && resolves(called_graph(node), seen));
  });
}

}  // namespace

bool resolves_sizes(const Graph &graph) {
  std::set<const Graph *> seen;
  return resolves(graph, seen);
}

}  // namespace kiln
