// Recurrent networks: layers of cells that carry a state along a sequence, in one direction or both.
#include "runtime/ops/recurrent.h"
#include "runtime/ops/family.h"
#include "runtime/ops/loop.h"

namespace kiln::ops {
namespace {

// ---- inference

Status check_weights(InferContext &c, const Network &n, const Dim &hidden) {
  const Dim rows = hidden * Dim(n.gates());
  for (size_t run = 0; run < n.runs(); ++run) {
    const Dim width = run < n.directions() ? c.inputs[0].dims[2] : hidden * Dim(static_cast<int64_t>(n.directions()));
    const Shape shapes[] = {{rows, width}, {rows, hidden}, {rows}, {rows}};
    for (size_t w = 0; w < n.weights_of_run(); ++w) {
      const size_t at = n.weight(run, static_cast<Network::Weight>(w));
      KILN_TRY(require_rank(c, at, shapes[w].size()));
      for (size_t d = 0; d < shapes[w].size(); ++d)
        KILN_TRY(c.require_equal(c.inputs[at].dims[d], shapes[w][d],
                                 str_cat("dim ", d, " of operand ", at, ", a weight of layer ", run / n.directions(),
                                         ", and what it follows from")));
    }
  }
  return {};
}

Status infer_recurrent(InferContext &c) {
  if (const int64_t layers = c.attr("layers").i64(); layers < 1 || layers > 1000)
    return c.fail("layers is ", layers, ", expected 1 to 1000");
  const Network n(c.op_name(), c.attrs);
  if (c.inputs.size() != n.operands())
    return c.fail("there are ", c.inputs.size(), " operands, expected ", n.operands(), ": x, ", n.weights_of_run(),
                  " weights for each of ", n.runs(), " layers and directions, ", n.has_state ? n.carried() : 0,
                  " states, ", n.has_lengths ? 1 : 0, " of lengths");
  if (n.cell == Network::Cell::rnn) KILN_TRY(require_word(c, "activation", {"tanh", "relu"}));
  KILN_TRY(require_rank(c, 0, 3));
  const TensorType &x = c.inputs[0];
  for (size_t k = 1; k < c.inputs.size() - n.has_lengths; ++k)
    if (c.inputs[k].dtype != x.dtype)
      return c.fail("x is ", name_of(x.dtype), ", operand ", k, " is ", name_of(c.inputs[k].dtype),
                    "; use convert to make them the same");
  const size_t first = n.weight(0, Network::of_state);
  KILN_TRY(require_rank(c, first, 2));
  const Dim hidden = c.inputs[first].dims[1], batch = x.dims[n.batch_first ? 0 : 1];
  KILN_TRY(check_weights(c, n, hidden));
  const Shape state = {static_cast<int64_t>(n.runs()), batch, hidden};
  for (size_t k = 0; k < (n.has_state ? n.carried() : 0); ++k) {
    KILN_TRY(require_rank(c, n.state(k), 3));
    for (size_t d = 0; d < 3; ++d)
      KILN_TRY(c.require_equal(c.inputs[n.state(k)].dims[d], state[d],
                               str_cat("dim ", d, " of operand ", n.state(k), ", a state, and what it follows from")));
  }
  if (n.has_lengths) {
    const TensorType &lengths = c.inputs[n.lengths()];
    if (!(dtypes(lengths.dtype) & index_types) || lengths.rank() != 1)
      return c.fail("lengths, operand ", n.lengths(), ", is ", lengths.text(), ", expected i64 or i32 of one dim");
    KILN_TRY(c.require_equal(lengths.dims[0], batch, "dim 0 of lengths and the batch of x"));
  }
  Shape y = x.dims;
  y[2] = hidden * Dim(static_cast<int64_t>(n.directions()));
  c.results = {make_type(x.dtype, std::move(y))};
  for (size_t k = 0; k < n.carried(); ++k) c.results.push_back(make_type(x.dtype, state));
  return {};
}

// ---- decomposition: the input's part of all gates is one product; a scan adds the state's

// One turn: (h, c of an lstm; the input's part of the gates, whether the rows go on; the state's weight and bias) ->
// (h, c; y).
struct Turn {
  const DecomposeContext &c;
  const Network &n;
  Composer &g;
  const Dim hidden;

  ValueId gate(ValueId gates, int64_t k, int64_t dim = 1) {
    return g("slice", {gates}, {{"dim", dim}, {"start", hidden * Dim(k)}, {"end", hidden * Dim(k + 1)}});
  }
  ValueId sigmoid_of(ValueId a, ValueId b) { return g("sigmoid", {g("add", {a, b})}); }
  ValueId product(ValueId h, ValueId weight, ValueId bias) {
    return n.has_bias ? g("linear", {h, weight, bias}) : g("linear", {h, weight});
  }

  ValueId rnn(ValueId h, ValueId gates, ValueId weight, ValueId bias) {
    return g(c.attr("activation").text_value(), {g("add", {gates, product(h, weight, bias)})});
  }
  ValueId gru(ValueId h, ValueId gates, ValueId weight, ValueId bias) {
    ValueId r, z, late;  // late: the state's part of the new state
    if (c.attr("linear_before_reset").boolean()) {
      const ValueId of_state = product(h, weight, bias);
      r = sigmoid_of(gate(gates, 0), gate(of_state, 0));
      z = sigmoid_of(gate(gates, 1), gate(of_state, 1));
      late = g("mul", {r, gate(of_state, 2)});
    } else {
      const auto part = [&](ValueId of, int64_t k) {
        return product(of, gate(weight, k, 0), n.has_bias ? gate(bias, k, 0) : ValueId{});
      };
      r = sigmoid_of(gate(gates, 0), part(h, 0));
      z = sigmoid_of(gate(gates, 1), part(h, 1));
      late = part(g("mul", {r, h}), 2);
    }
    const ValueId fresh = g("tanh", {g("add", {gate(gates, 2), late})});
    return g("add", {fresh, g("mul", {z, g("sub", {h, fresh})})});
  }
  std::pair<ValueId, ValueId> lstm(ValueId h, ValueId cell, ValueId gates, ValueId weight, ValueId bias) {
    const ValueId all = g("add", {gates, product(h, weight, bias)});
    const ValueId kept = g("mul", {g("sigmoid", {gate(all, 1)}), cell});
    const ValueId added = g("mul", {g("sigmoid", {gate(all, 0)}), g("tanh", {gate(all, 2)})});
    const ValueId next = g("add", {kept, added});
    return {g("mul", {g("sigmoid", {gate(all, 3)}), g("tanh", {next})}), next};
  }
};

Result<GraphPtr> turn_of(DecomposeContext &outer, const Network &n, DType dtype, const Dim &batch, const Dim &hidden) {
  const Dim b = loop_dim(batch, "batch"), h = loop_dim(hidden, "hidden"), rows = h * Dim(n.gates());
  const auto type = [&](Shape dims) { return make_type(dtype, std::move(dims)); };
  std::vector<TensorType> types(n.carried(), type({b, h}));
  types.push_back(type({b, rows}));
  if (n.has_lengths) types.push_back(boolean({b, 1}));
  types.push_back(type({rows, h}));
  if (n.has_bias) types.push_back(type({rows}));
  LoopGraph graph(outer);
  KILN_ASSIGN(const std::vector<ValueId> given, graph.inputs(types));
  auto operand = given.begin() + static_cast<int64_t>(n.carried());
  const std::vector<ValueId> state(given.begin(), operand);
  const ValueId gates = *operand++, goes_on = n.has_lengths ? *operand++ : ValueId{}, weight = *operand++,
                bias = n.has_bias ? *operand : ValueId{};
  Composer &g = graph.g;
  Turn turn{outer, n, g, h};
  std::vector<ValueId> next = state;
  if (n.cell == Network::Cell::lstm)
    std::tie(next[0], next[1]) = turn.lstm(state[0], state[1], gates, weight, bias);
  else
    next[0] = n.cell == Network::Cell::gru ? turn.gru(state[0], gates, weight, bias)
                                           : turn.rnn(state[0], gates, weight, bias);
  ValueId y = next[0];
  if (n.has_lengths) {
    y = g("where", {goes_on, y, g.number(y, 0)});
    for (size_t k = 0; k < next.size(); ++k) next[k] = g("where", {goes_on, next[k], state[k]});
  }
  next.push_back(y);
  return graph.finish(next);
}

Status decompose_recurrent(DecomposeContext &c) {
  const Network n(c.op.name, c.node.attrs);
  Composer g(c);
  const auto operand = [&](size_t k) { return c.node.inputs[k]; };
  const AttrMap time_first = {{"dims", ints({1, 0, 2})}};
  const TensorType given = c.type(operand(0));  // an edit moves types
  const Dim batch = given.dims[n.batch_first ? 0 : 1], hidden = c.type(operand(n.weight(0, Network::of_state))).dims[1];
  const Dim turns = given.dims[n.batch_first ? 1 : 0];
  KILN_ASSIGN(const GraphPtr turn, turn_of(c, n, given.dtype, batch, hidden));
  ValueId goes_on;
  if (n.has_lengths) {
    const ValueId number =
        g("iota", {},
          {{"shape", AttrValue(Shape{turns, 1, 1})}, {"dim", 0}, {"dtype", c.type(operand(n.lengths())).dtype}});
    goes_on = g("lt", {number, g("unsqueeze", {operand(n.lengths())}, {{"dims", ints({0, 2})}})});
  }
  ValueId x = n.batch_first ? g("permute", {operand(0)}, time_first) : operand(0);
  std::vector<std::vector<ValueId>> last(n.carried());  // states of each run
  for (size_t run = 0; run < n.runs();) {
    std::vector<ValueId> sides;
    for (size_t d = 0; d < n.directions(); ++d, ++run) {
      std::vector<ValueId> product = {x, operand(n.weight(run, Network::of_input))};
      if (n.has_bias) product.push_back(operand(n.weight(run, Network::bias_of_input)));
      std::vector<ValueId> operands;
      for (size_t k = 0; k < n.carried(); ++k) {
        const auto at = static_cast<int64_t>(run);
        operands.push_back(
            n.has_state ? g("squeeze",
                            {g("slice", {operand(n.state(k))}, {{"dim", 0}, {"start", Dim(at)}, {"end", Dim(at + 1)}})},
                            {{"dims", ints({0})}})
                        : g.full(given.dtype, {batch, hidden}, 0));
      }
      operands.push_back(g("linear", product));
      if (n.has_lengths) operands.push_back(goes_on);
      operands.push_back(operand(n.weight(run, Network::of_state)));
      if (n.has_bias) operands.push_back(operand(n.weight(run, Network::bias_of_state)));
      const ValueId scanned = g("scan", operands,
                                {{"body_graph", turn},
                                 {"carried", static_cast<int64_t>(n.carried())},
                                 {"sequences", n.has_lengths ? 2 : 1},
                                 {"reverse", d == 1}});
      for (size_t k = 0; k < n.carried(); ++k) last[k].push_back({scanned.node, static_cast<uint32_t>(k)});
      sides.push_back({scanned.node, static_cast<uint32_t>(n.carried())});
    }
    x = sides.size() == 1 ? sides[0] : g("concat", sides, {{"dim", 2}});
  }
  std::vector<ValueId> results = {n.batch_first ? g("permute", {x}, time_first) : x};
  for (const std::vector<ValueId> &states : last) results.push_back(g("stack", states));
  return g.give(std::move(results));
}

// ---- samples

struct SampleSizes {
  Dim turns, batch, inputs, hidden;
};

// `op`: its name, for the number of gates.
Sample recurrent_sample(std::string_view op, std::string name, const SampleSizes &s, AttrMap attrs = {},
                        std::map<std::string, int64_t> sizes = {}) {
  AttrMap all = {{"layers", 1},  {"bidirectional", false}, {"batch_first", false},
                 {"bias", true}, {"initial_state", false}, {"lengths", false}};
  for (const auto &[key, value] : attrs) all.insert_or_assign(key, value);
  const Network n(op, all);
  const Dim rows = s.hidden * Dim(n.gates());
  Sample made{.name = std::move(name), .attrs = std::move(attrs), .sizes = std::move(sizes), .low = -1, .high = 1};
  made.inputs.push_back(f32(n.batch_first ? Shape{s.batch, s.turns, s.inputs} : Shape{s.turns, s.batch, s.inputs}));
  for (size_t run = 0; run < n.runs(); ++run) {
    const Dim width = run < n.directions() ? s.inputs : s.hidden * Dim(static_cast<int64_t>(n.directions()));
    made.inputs.push_back(f32({rows, width}));
    made.inputs.push_back(f32({rows, s.hidden}));
    for (size_t k = 2; k < n.weights_of_run(); ++k) made.inputs.push_back(f32({rows}));
  }
  for (size_t k = 0; k < (n.has_state ? n.carried() : 0); ++k)
    made.inputs.push_back(f32({static_cast<int64_t>(n.runs()), s.batch, s.hidden}));
  made.tolerance = 2e-5;
  return made;
}

void recurrent_samples(std::string_view op, SampleSink &out) {
  const Dim t = sym("t"), b = sym("b");
  out.push_back(recurrent_sample(op, "plain", {5, 3, 4, 6}));
  out.push_back(recurrent_sample(op, "layers", {4, 2, 3, 5}, {{"layers", 2}, {"initial_state", true}}));
  out.push_back(recurrent_sample(op, "both_directions", {4, 2, 3, 5},
                                 {{"layers", 2}, {"bidirectional", true}, {"bias", false}, {"batch_first", true}}));
  for (const DType type : {DType::i64, DType::i32}) {
    out.push_back(recurrent_sample(op, str_cat("lengths_", name_of(type)), {4, 3, 2, 3},
                                   {{"bidirectional", true}, {"initial_state", true}, {"lengths", true}}));
    const size_t at = out.back().inputs.size();
    out.back().inputs.push_back(make_type(type, {3}));
    out.back().given = {{at, type == DType::i64 ? i64_data({3}, {4, 0, 2}) : tensor_of<int32_t>(type, {3}, {3, 1, 4})}};
  }
  out.push_back(recurrent_sample(op, "no_turns", {0, 2, 3, 4}, {{"initial_state", true}}));
  out.push_back(recurrent_sample(op, "one", {1, 1, 1, 1}));
  out.push_back(recurrent_sample(op, "symbolic", {t, b, 3, 4}, {{"initial_state", true}}, {{"t", 5}, {"b", 3}}));
  out.push_back(recurrent_sample(op, "symbolic_all", {t, b, sym("i"), sym("h")}, {{"batch_first", true}},
                                 {{"t", 2}, {"b", 1}, {"i", 3}, {"h", 5}}));
}
void samples_rnn(SampleSink &out) {
  recurrent_samples("rnn", out);
  out.push_back(recurrent_sample("rnn", "relu", {3, 2, 3, 4}, {{"activation", "relu"}}));
}
void samples_gru(SampleSink &out) {
  recurrent_samples("gru", out);
  out.push_back(recurrent_sample("gru", "reset_first", {3, 2, 3, 4}, {{"linear_before_reset", false}}));
  out.push_back(recurrent_sample("gru", "reset_first_without_bias", {3, 2, 3, 4},
                                 {{"linear_before_reset", false}, {"bias", false}}));
}
void samples_lstm(SampleSink &out) { recurrent_samples("lstm", out); }

Op recurrent(std::string_view name, std::string_view doc, std::string_view weights,
             std::vector<std::string_view> results, std::vector<AttrDef> more, void (*samples)(SampleSink &)) {
  std::vector<AttrDef> attrs = {
      {.name = "layers", .doc = "each reads what the one before gives", .kind = AttrKind::i64, .fallback = 1},
      flag("bidirectional", "a run from the end, too, with weights of its own: D is 2, not 1", false),
      flag("batch_first", "x and y are [B, T, ...]", false),
      flag("bias", "each run has two biases", true),
      flag("initial_state", "states are given; else they begin as 0", false),
      flag("lengths", "the last operand is how many elements each row of the batch has: y is 0 behind them", false)};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return {{.name = name,
           .doc = doc,
           .args = {{"x", "[T, B, I]", float_types},
                    {"args", weights, float_types | index_types, Arity::variadic, /*same_dtype=*/false}},
           .result_names = std::move(results),
           .attrs = std::move(attrs),
           .infer = infer_recurrent},
          {.decompose = decompose_recurrent,
           .reference = reference_recurrent,
           .gradient = through_decomposition(),
           .samples = samples}};
}

const Op recurrent_records[] = {
    recurrent(
        "rnn",
        "h = activation(w_ih x + b_ih + w_hh h + b_hh) along T. The results: h of each element of the last layer, "
        "[T, B, D H], and the last h of each layer and direction, [layers D, B, H].",
        "for each layer and direction w_ih [H, I or D H], w_hh [H, H], b_ih [H], b_hh [H]; then the state "
        "[layers D, B, H]; then lengths [B]",
        {"y", "h"}, {{.name = "activation", .doc = "tanh or relu", .kind = AttrKind::text, .fallback = "tanh"}},
        samples_rnn),
    recurrent("gru",
              "Gated recurrent units, gates in the order r, z, n: n = tanh(in_n + r (w_hn h + b_hn)), h = (1 - z) n + "
              "z h. The results: h of each element of the last layer, [T, B, D H], and the last h of each layer and "
              "direction, [layers D, B, H].",
              "for each layer and direction w_ih [3 H, I or D H], w_hh [3 H, H], b_ih [3 H], b_hh [3 H]; then the "
              "state [layers D, B, H]; then lengths [B]",
              {"y", "h"}, {flag("linear_before_reset", "false: n = tanh(in_n + w_hn (r h) + b_hn)", true)},
              samples_gru),
    recurrent("lstm",
              "Long short-term memory, gates in the order i, f, g, o: c = f c + i g, h = o tanh(c). The results: h of "
              "each element of the last layer, [T, B, D H], and the last h and c of each layer and direction, "
              "[layers D, B, H].",
              "for each layer and direction w_ih [4 H, I or D H], w_hh [4 H, H], b_ih [4 H], b_hh [4 H]; then the "
              "states h and c [layers D, B, H]; then lengths [B]",
              {"y", "h", "c"}, {}, samples_lstm),
};

}  // namespace

std::span<const Op> recurrent_ops() { return recurrent_records; }

}  // namespace kiln::ops
