// scan: a graph applied along sequences, with what it carries from turn to turn.
#include "runtime/ops/family.h"
#include "runtime/ops/nested.h"
#include "runtime/ops/nesting.h"

namespace kiln::ops {
namespace {

Result<Dim> checked_turns(InferContext &c, const ScanOperands &operands) {
  const Dim &turns = c.attr("turns").dim();
  const bool given = !turns.is(-1);
  if (operands.sequences == 0) {
    if (!given) return c.fail("turns is -1 and no operand is a sequence; expected how many turns there are");
    KILN_TRY(require_at_most(c, 0, turns, "0 <= turns"));
    return turns;
  }
  const Dim &length = c.inputs[operands.carried].dims[0];
  for (size_t k = 1; k < operands.sequences; ++k)
    KILN_TRY(c.require_equal(c.inputs[operands.carried + k].dims[0], length,
                             str_cat("dim 0 of operands ", operands.carried + k, " and ", operands.carried)));
  if (given) KILN_TRY(c.require_equal(turns, length, str_cat("turns and dim 0 of operand ", operands.carried)));
  return length;
}

Status infer_scan(InferContext &c) {
  const auto count = static_cast<int64_t>(c.inputs.size());
  const int64_t carried = c.attr("carried").i64(), sequences = c.attr("sequences").i64();
  if (carried < 0 || carried > count)
    return c.fail("carried is ", carried, ", expected 0 to ", count, ", for there are ", count, " operands");
  if (sequences < -1 || sequences > count - carried)
    return c.fail("sequences is ", sequences, ", expected -1, or 0 to ", count - carried, ", for ", count,
                  " operands have ", carried, " that are carried");
  const ScanOperands operands = scan_operands(c.attrs, c.inputs.size());
  std::vector<TensorType> given(c.inputs.begin(), c.inputs.end());
  for (size_t k = operands.carried; k < operands.carried + operands.sequences; ++k) {
    if (given[k].rank() == 0)
      return c.fail("operand ", k, " is ", given[k].text(), ", expected a sequence along dim 0");
    given[k] = element_of(given[k]);
  }
  KILN_ASSIGN(const Dim turns, checked_turns(c, operands));
  KILN_TRY(require_row_major(c, "body_graph"));
  Bindings bindings;
  const Graph &body = *c.attr("body_graph").graph();
  KILN_TRY(bindings.bind(c, body, given));
  KILN_ASSIGN(const std::vector<TensorType> outputs, bindings.outputs(c, body));
  if (outputs.size() < operands.carried)
    return c.fail("body_graph has ", outputs.size(), " outputs, expected the ", operands.carried,
                  " that are carried, and more");
  KILN_TRY(require_outputs(c, "body_graph", std::span(outputs).first(operands.carried),
                           c.inputs.first(operands.carried), "the carried operands"));
  for (size_t k = 0; k < outputs.size(); ++k) {
    TensorType type = k < operands.carried ? c.inputs[k] : outputs[k];
    if (k >= operands.carried) type.dims.insert(type.dims.begin(), turns);
    c.results.push_back(make_type(type.dtype, std::move(type.dims)));
  }
  return {};
}

Status reference_scan(ReferenceContext &c) {
  const ScanOperands operands = scan_operands(c.attrs, c.inputs.size());
  const size_t carried = operands.carried;
  const auto turns =
      static_cast<size_t>(operands.sequences ? c.inputs[carried]->shape[0] : c.attr("turns").dim().integer());
  std::vector<RefTensor> state;
  for (const RefTensor *operand : c.inputs.first(carried)) state.push_back(*operand);
  std::vector<const RefTensor *> now(c.inputs.begin(), c.inputs.end());
  std::vector<RefTensor> elements(operands.sequences);
  for (size_t n = 0; n < turns; ++n) {
    const size_t turn = operands.reverse ? turns - 1 - n : n;
    for (size_t k = 0; k < carried; ++k) now[k] = &state[k];
    for (size_t k = 0; k < elements.size(); ++k) {
      elements[k] = element_at(c, *c.inputs[carried + k], 0, turn);
      now[carried + k] = &elements[k];
    }
    KILN_ASSIGN(std::vector<RefTensor> made, c.run_graph(*c.attr("body_graph").graph(), now));
    for (size_t k = carried; k < made.size(); ++k) set_element(c, c.results[k], 0, turn, made[k]);
    made.resize(carried);
    state = std::move(made);
    KILN_TRY(c.on_turn(static_cast<int64_t>(n) + 1));
  }
  std::move(state.begin(), state.end(), c.results.begin());
  return {};
}

// ---- samples

void samples_scan(SampleSink &out) {
  const Dim m = sym("m"), n = sym("n"), t = sym("t");
  // h = a h + x, which is also the result, as is h w: a is a sequence, too, w is not.
  const auto recurrence = [&](const Dim &width) {
    const TensorType row = f32({width});
    return small_graph({row, row, row, row}, {{"mul", {1, 0}}, {"add", {4, 2}}, {"mul", {5, 3}}}, {5, 5, 6});
  };
  const auto sample = [&](const char *name, const Dim &turns, const Dim &width, AttrMap more = {},
                          std::map<std::string, int64_t> sizes = {}) {
    AttrMap attrs = {{"body_graph", recurrence(sym("k"))}, {"carried", 1}, {"sequences", 2}};
    attrs.insert(more.begin(), more.end());
    out.push_back({.name = name,
                   .inputs = {f32({width}), f32({turns, width}), f32({turns, width}), f32({width})},
                   .attrs = std::move(attrs),
                   .sizes = std::move(sizes),
                   .low = -1,
                   .high = 1});
  };
  sample("recurrence", 5, 33);
  sample("reverse", 4, 9, {{"reverse", true}});
  sample("side_by_side", 3, 256);
  sample("one_turn", 1, 9);
  sample("no_turns", 0, 9);
  sample("nothing", 3, 0);
  sample("symbolic", t, n, {}, {{"t", 5}, {"n", 17}});
  sample("symbolic_none", t, n, {{"turns", t}, {"reverse", true}}, {{"t", 0}, {"n", 3}});

  // h = tanh(x + h w): a contraction of what is carried.
  const auto cell = small_graph({f32({sym("b"), 8}), f32({sym("b"), 8}), f32({8, 8})},
                                {{"matmul", {0, 2}}, {"add", {3, 1}}, {"tanh", {4}}}, {5, 5});
  out.push_back({.name = "contraction",
                 .inputs = {f32({3, 8}), f32({6, 3, 8}), f32({8, 8})},
                 .attrs = {{"body_graph", cell}, {"carried", 1}, {"sequences", 1}},
                 .low = -0.5,
                 .high = 0.5});
  // h = a h + x c, y = the sum of h's rows: what a state space model does.
  const auto state = small_graph({f32({m, 5}), f32({m, 1}), f32({m, 5})},
                                 {{"mul", {2, 0}}, {"add", {3, 1}}, {"sum", {4}}}, {4, 5}, {{"dims", ints({1})}});
  out.push_back({.name = "rows_that_are_added_up",
                 .inputs = {f32({n, 5}), f32({7, n, 1}), f32({n, 5})},
                 .attrs = {{"body_graph", state}, {"carried", 1}, {"sequences", 1}},
                 .sizes = {{"n", 9}},
                 .low = -1,
                 .high = 1});
  // Without sequences; what is carried is given out twice, and an operand as it is.
  const auto doubling = small_graph({f32({m}), f32({sym("k")})}, {{"add", {0, 0}}}, {2, 0, 1});
  out.push_back({.name = "turns",
                 .inputs = {f32({n}), f32({t})},
                 .attrs = {{"body_graph", doubling}, {"carried", 1}, {"sequences", 0}, {"turns", t}},
                 .sizes = {{"n", 3}, {"t", 4}}});
  // Carries nothing.
  const auto square = small_graph({i64({})}, {{"mul", {0, 0}}}, {1});
  out.push_back({.name = "map", .inputs = {i64({9})}, .attrs = {{"body_graph", square}, {"carried", 0}}});
  // What was carried is given out, and the elements are carried on: of every type.
  const std::vector<TensorType> elements = one_of_each({3}), sequences = one_of_each({2, 3});
  const size_t types = elements.size();
  std::vector<TensorType> inside = elements, inputs = elements;
  inside.insert(inside.end(), elements.begin(), elements.end());
  inputs.insert(inputs.end(), sequences.begin(), sequences.end());
  std::vector<size_t> outputs;
  for (size_t k = 0; k < 2 * types; ++k) outputs.push_back((k + types) % (2 * types));
  out.push_back(
      {.name = "every_dtype",
       .inputs = std::move(inputs),
       .attrs = {{"body_graph", small_graph(inside, {}, outputs)}, {"carried", static_cast<int64_t>(types)}}});
}

const Op scan_records[] = {
    {{.name = "scan",
      .doc =
          "A graph applied turn after turn. In turn t body_graph is given the carried operands, element t along dim 0 "
          "of each sequence, and the other operands; its first outputs are carried into the next turn. The results are "
          "what is carried in the end, and the body's other outputs of all turns, stacked along a new dim 0.",
      .flags = op_flags::moves | op_flags::control | op_flags::carries_effects,
      .args = {{"args", "what is carried, the sequences, and what stays the same", any_value, Arity::variadic,
                /*same_dtype=*/false}},
      .attrs = {{.name = "body_graph",
                 .doc = "one turn: what is carried anew, of the same types, then elements of results",
                 .kind = AttrKind::graph,
                 .required = true},
                {.name = "carried", .doc = "how many operands are", .kind = AttrKind::i64, .fallback = 1},
                {.name = "sequences",
                 .doc = "how many operands after these are; -1: all others",
                 .kind = AttrKind::i64,
                 .fallback = -1},
                flag("reverse", "from the last element to the first", false),
                {.name = "turns",
                 .doc = "how many there are; -1: as many as the sequences have elements",
                 .kind = AttrKind::dim,
                 .fallback = -1}},
      .infer = infer_scan},
     {.reference = reference_scan, .gradient = by_rule("args"), .samples = samples_scan}},
};

}  // namespace

std::span<const Op> scan_ops() { return scan_records; }

}  // namespace kiln::ops

namespace kiln {

ScanOperands scan_operands(const AttrMap &attrs, size_t operands) {
  const auto number = [&](const char *name) { return attrs.find(name)->second.i64(); };
  const int64_t carried = number("carried"), sequences = number("sequences");
  return {static_cast<uint32_t>(carried),
          static_cast<uint32_t>(sequences < 0 ? static_cast<int64_t>(operands) - carried : sequences),
          attrs.find("reverse")->second.boolean()};
}

Dim turns_of(const Graph &graph, const Node &scan) {
  const ScanOperands operands = scan_operands(scan.attrs, scan.inputs.size());
  return operands.sequences ? graph.type(scan.inputs[operands.carried]).dims[0]
                            : scan.attrs.find("turns")->second.dim();
}

}  // namespace kiln
