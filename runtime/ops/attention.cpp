// Attention: softmax(q k^T * scale + mask) v, with grouped heads.
#include "runtime/ops/attention.h"

#include <cassert>

#include "runtime/graph/json.h"
#include "runtime/ops/nesting.h"
#include "runtime/ops/sample_shapes.h"

namespace kiln::ops {
namespace {

constexpr size_t mask_operand = 3;

// The graph of attribute `name`; null: none.
GraphPtr graph_of(const AttrMap &attrs, std::string_view name) {
  const AttrValue &value = attrs.find(name)->second;
  return value.size() ? value.graph() : nullptr;
}

// What a graph is given: scores, if it takes them, numbers of batch, head, query and key, and what is captured; small
// floats as f32.
Status infer_graph(InferContext &c, const AttentionSizes &s, std::string_view name) {
  const GraphPtr graph = graph_of(c.attrs, name);
  if (!graph) return {};
  const DType wide = dtype_info(c.inputs[q_arg].dtype).computes_as;
  const bool modifies_scores = name == "score_graph";
  std::vector<TensorType> operands;
  if (modifies_scores) operands.push_back(make_type(wide, s.scores()));
  for (size_t d = 0; d < 4; ++d) {
    Shape shape(4, 1);
    shape[d] = s.scores()[d];
    operands.push_back(make_type(DType::i64, std::move(shape)));
  }
  for (size_t k = first_captured; k < c.inputs.size(); ++k)
    operands.push_back(make_type(dtype_info(c.inputs[k].dtype).computes_as, c.inputs[k].dims));
  KILN_ASSIGN(const std::vector<TensorType> outputs, infer_nested(c, *graph, operands));
  const TensorType expected = make_type(modifies_scores ? wide : DType::boolean, s.scores());
  if (outputs.size() != 1) return c.fail(name, " has ", outputs.size(), " outputs, expected 1: ", expected.text());
  const TensorType &found = outputs[0];
  if (found.dtype != expected.dtype || found.rank() != 4)
    return c.fail(name, " gives ", found.text(), ", expected ", expected.text());
  for (size_t d = 0; d < 4; ++d)
    if (modifies_scores || !found.dims[d].is(1))
      KILN_TRY(c.require_equal(found.dims[d], expected.dims[d],
                               str_cat("dim ", d, " of what ", name, " gives and of [B, H, T, S]")));
  return {};
}

Status infer_attention(InferContext &c) {
  KILN_ASSIGN(const AttentionSizes s, infer_attention_operands(c, mask_operand));
  if (c.inputs.size() > first_captured && !graph_of(c.attrs, "score_graph") && !graph_of(c.attrs, "mask_graph"))
    return c.fail("there is neither a score_graph nor a mask_graph for ", c.arg_name(first_captured));
  for (const char *name : {"score_graph", "mask_graph"}) KILN_TRY(infer_graph(c, s, name));
  const DType dtype = c.inputs[q_arg].dtype;
  c.results = {make_type(dtype, s.results())};
  if (c.attr("logsumexp").boolean())
    c.results.push_back(make_type(dtype_info(dtype).computes_as, {s.batch, s.heads, s.rows}));
  return {};
}

// ---- decomposition

// Calls the graph of attribute `name`. Its nodes are named by their path, which errors of a call tell.
Result<ValueId> called(DecomposeContext &c, Composer &g, Scoring &steps, std::string_view name,
                       std::vector<ValueId> operands) {
  const Shape scores = steps.sizes.scores();
  for (size_t d = 0; d < 4; ++d) operands.push_back(steps.numbers(scores[d], d, 4));
  for (size_t k = first_captured; k < c.node.inputs.size(); ++k) {
    const ValueId captured = c.node.inputs[k];
    const DType dtype = c.type(captured).dtype;
    operands.push_back(is_small_float(dtype) ? g.convert(captured, dtype_info(dtype).computes_as) : captured);
  }
  if (!g.ok()) return g.give({});
  const std::string path = str_cat(c.node.name, ".", name);
  KILN_ASSIGN(const uint32_t id, c.edit.add(c.ops.find("call"), operands, {{"graph", graph_of(c.node.attrs, name)}},
                                            c.edit.view().find(path) ? "" : path));
  return ValueId{id, 0};
}

Result<ValueId> modified(DecomposeContext &c, Composer &g, Scoring &steps, ValueId scores) {
  const DType wide = dtype_info(steps.dtype).computes_as;
  if (graph_of(c.node.attrs, "score_graph")) {
    ValueId given = steps.reshape(scores, steps.sizes.scores());
    if (wide != steps.dtype) given = g.convert(given, wide);
    KILN_ASSIGN(const ValueId made, called(c, g, steps, "score_graph", {given}));
    scores = steps.grouped(wide == steps.dtype ? made : g.convert(made, steps.dtype));
  }
  if (graph_of(c.node.attrs, "mask_graph")) {
    KILN_ASSIGN(const ValueId visible, called(c, g, steps, "mask_graph", {}));
    scores = steps.masked_by(scores, visible);
  }
  return scores;
}

// Softmax's parts, for rows without a visible key, too, whose max is -inf and whose sum is 0: either is replaced.
struct Weights {
  ValueId exp, divisor, sum, finite;  // exp(scores - finite), and its sum; the divisor is 1 where that is 0
};
Weights weighed(Composer &g, ValueId scores) {
  const AttrMap along = {{"dims", ints({-1})}, {"keepdim", true}};
  const ValueId max = g("max", {scores}, along);
  const ValueId none = g("eq", {max, g.number(scores, -infinity)});
  const ValueId finite = g("where", {none, g.number(scores, 0), max});
  const ValueId exp = g("exp", {g("sub", {scores, finite})});
  const ValueId sum = g("sum", {exp}, along);
  return {exp, g("where", {none, g.number(scores, 1), sum}), sum, finite};
}

Status decompose_attention(DecomposeContext &c) {
  Composer g(c);
  Scoring steps(c, g);
  const AttentionSizes &s = steps.sizes;
  KILN_ASSIGN(ValueId scores, modified(c, g, steps, steps.capped(steps.scaled())));
  if (c.node.inputs.size() > mask_operand) scores = steps.masked_by(scores, c.node.inputs[mask_operand]);
  const Weights w = weighed(g, steps.masked_by_place(scores));
  // Of a row of results there are fewer to divide than there are weights.
  const ValueId y = g("div", {g("matmul", {w.exp, steps.one_repeat(c.node.inputs[v_arg])}), w.divisor});
  std::vector<ValueId> results = {steps.reshape(y, s.results())};
  if (c.attr("logsumexp").boolean()) {
    const ValueId log = steps.reshape(g("add", {g("log", {w.sum}), w.finite}), {s.batch, s.heads, s.rows});
    const DType wide = dtype_info(steps.dtype).computes_as;
    results.push_back(wide == steps.dtype ? log : g.convert(log, wide));
  }
  return g.give(std::move(results));
}

// ---- samples

// A graph of the numbers of batch, head, query and key, and of more inputs before and behind; in JSON.
AttrValue graph_of_numbers(const std::string &before, const std::string &behind, const std::string &nodes) {
  const auto number = [](const char *name, const char *shape) {
    return str_cat(R"({"name":")", name, R"(","type":{"dtype":"i64","shape":)", shape, "}}");
  };
  const Result<GraphPtr> graph =
      read_json(str_cat(R"({"kiln":1,"inputs":[)", before, number("batch", R"(["B",1,1,1])"), ",",
                        number("head", R"([1,"H",1,1])"), ",", number("query", R"([1,1,"T",1])"), ",",
                        number("key", R"([1,1,1,"S"])"), behind, R"(],"nodes":[)", nodes,
                        R"(],"outputs":[{"name":"y","value":"y"}]})"),
                builtin_ops());
  assert(graph.ok());
  return *graph;
}
std::string input_of(std::string_view name, DType dtype, const char *shape) {
  return str_cat(R"({"name":")", name, R"(","type":{"dtype":")", name_of(dtype), R"(","shape":)", shape, "}}");
}

// score + (key - query) * slope[head], with the slopes captured, or without them score * (1 + batch).
AttrValue score_graph(DType dtype, bool captures) {
  const auto converted = [&](const char *name, const char *of) {
    return str_cat(R"({"name":")", name, R"(","op":"convert","inputs":[")", of, R"("],"attrs":{"dtype":")",
                   name_of(dtype), R"("}},)");
  };
  const std::string score = input_of("score", dtype, R"(["B","H","T","S"])") + ",";
  if (!captures)
    return graph_of_numbers(score, "",
                            converted("number", "batch") + R"({"name":"more","op":"mul","inputs":["score","number"]},
      {"name":"y","op":"add","inputs":["score","more"]})");
  return graph_of_numbers(score, "," + input_of("slopes", dtype, R"(["count",1])"),
                          R"({"name":"ahead","op":"sub","inputs":["key","query"]},)" + converted("distance", "ahead") +
                              R"({"name":"slope","op":"embedding","inputs":["slopes","head"]},
      {"name":"own","op":"squeeze","inputs":["slope"],"attrs":{"dims":[4]}},
      {"name":"bias","op":"mul","inputs":["distance","own"]},
      {"name":"y","op":"add","inputs":["score","bias"]})");
}

// key <= query, where what is captured counts for nothing.
AttrValue mask_graph(const std::vector<DType> &captured) {
  std::string behind;
  for (const DType dtype : captured)
    behind += "," + input_of(name_of(dtype), dtype_info(dtype).computes_as, R"(["count",1])");
  return graph_of_numbers("", behind, R"({"name":"y","op":"le","inputs":["key","query"]})");
}

void samples_attention(SampleSink &out) {
  // q's shape, and groups, keys and width.
  const auto sample = [&](const char *name, const char *queries, const char *others, AttrMap attrs = {},
                          std::vector<TensorType> more = {}, std::map<std::string, int64_t> sizes = {}) {
    const Shape q = shape_from(queries), of = shape_from(others);
    Sample made{.name = name,
                .inputs = {f32(q), f32({q[0], of[0], of[1], q[3]}), f32({q[0], of[0], of[1], of[2]})},
                .attrs = std::move(attrs),
                .sizes = std::move(sizes)};
    made.inputs.insert(made.inputs.end(), more.begin(), more.end());
    out.push_back(std::move(made));
  };
  const AttrMap causal = {{"causal", true}};
  sample("plain", "2, 3, 7, 8", "3, 9, 8");
  sample("other_width", "1, 2, 5, 16", "2, 17, 33");
  sample("given_scale", "1, 2, 5, 8", "2, 5, 8", {{"scale", 0.3}});
  sample("grouped_heads", "2, 6, 7, 8", "2, 9, 5");
  sample("one_group", "1, 4, 17, 16", "1, 17, 16", causal);
  sample("causal", "2, 2, 17, 8", "2, 17, 8", causal);
  sample("causal_more_keys", "1, 2, 3, 8", "2, 17, 8", causal);
  sample("causal_fewer_keys", "1, 2, 9, 8", "2, 5, 8", causal);  // the first queries see nothing: 0
  sample("one_query", "1, 4, 1, 8", "2, 33, 8", causal);
  sample("no_queries", "1, 2, 0, 8", "2, 5, 8");
  sample("no_keys", "1, 2, 3, 8", "2, 0, 8");
  sample("mask", "2, 2, 5, 8", "2, 9, 8", {}, {boolean({5, 9})});
  sample("mask_for_each_head", "2, 4, 5, 8", "2, 9, 8", {}, {boolean({2, 4, 5, 9})});
  sample("mask_for_each_batch", "2, 4, 5, 8", "2, 9, 8", causal, {boolean({2, 1, 1, 9})});
  sample("float_mask", "2, 4, 5, 8", "4, 9, 8", {}, {f32({4, 1, 9})});
  sample("symbolic", "b, 4, t, 16", "2, t, 16", causal, {}, {{"b", 2}, {"t", 7}});
  sample("symbolic_keys", "b, 4, t, 16", "4, s, 8", causal, {}, {{"b", 1}, {"t", 3}, {"s", 9}});
  sample("symbolic_one", "b, 2, t, 8", "1, t, 8", causal, {}, {{"b", 1}, {"t", 1}});
  sample("symbolic_mask", "b, 2, t, 8", "2, s, 8", {}, {boolean(shape_from("b, 1, t, s"))},
         {{"b", 2}, {"t", 5}, {"s", 4}});
  sample("window", "1, 2, 9, 4", "1, 9, 3", {{"window", ints({2, 1})}});
  sample("window_left", "1, 1, 5, 4", "1, 9, 3", {{"window", ints({3, -1})}, {"causal", true}});
  sample("window_right", "1, 1, 7, 4", "1, 4, 3", {{"window", ints({-1, 2})}});  // the first query sees nothing
  sample("window_of_one", "b, 2, t, 4", "1, t, 3", {{"window", ints({0, 0})}, {"logsumexp", true}}, {},
         {{"b", 2}, {"t", 3}});
  sample("softcap", "1, 2, 5, 8", "1, 7, 3", {{"softcap", 0.75}}, {f32({5, 7})});
  sample("logsumexp", "1, 2, 5, 4", "1, 3, 3", {{"logsumexp", true}, {"causal", true}, {"softcap", 3.0}});
  sample("score_graph", "2, 2, 3, 4", "1, 5, 3", {{"score_graph", score_graph(DType::f32, false)}});
  sample("mask_graph", "1, 2, 5, 4", "2, 5, 3", {{"mask_graph", mask_graph({})}, {"logsumexp", true}},
         {boolean({2, 1, 5})});
  sample("both_graphs", "b, 4, t, 4", "2, s, 3",
         {{"score_graph", score_graph(DType::f32, true)}, {"mask_graph", mask_graph({DType::f32})}},
         {boolean({}), f32({4, 1})}, {{"b", 2}, {"t", 3}, {"s", 4}});
  for (const DType small : {DType::f16, DType::f64}) {  // what is captured is read in f32 where it is small
    sample(str_cat("both_graphs_", name_of(small)).c_str(), "1, 2, 3, 4", "2, 4, 3", out.back().attrs,
           {boolean({}), f32({2, 1})});
    if (small == DType::f64)
      out.back().attrs = {{"score_graph", score_graph(small, true)}, {"mask_graph", mask_graph({small})}};
    for (TensorType &type : out.back().inputs)
      if (type.dtype == DType::f32) type.dtype = small;
  }
  std::vector<DType> every;
  std::vector<TensorType> more = {boolean({})};
  for (int number = 1; number <= dtype_count; ++number) {
    every.push_back(static_cast<DType>(number));
    more.push_back(make_type(every.back(), {2, 1}));
  }
  sample("every_dtype", "1, 1, 2, 3", "1, 2, 2", {{"mask_graph", mask_graph(every)}}, std::move(more));
  // A NaN makes its query's row NaN, and an infinite value the rows that weigh it, even by 0.
  sample("not_finite", "1, 1, 3, 2", "1, 2, 1");
  out.back().given = {{0, f32_data({1, 1, 3, 2}, {1, 2, NAN, 1, -INFINITY, 0})},
                      {1, f32_data({1, 1, 2, 2}, {1, 0.5f, 2, 1})},
                      {2, f32_data({1, 1, 2, 1}, {3, INFINITY})}};
  out.push_back({.name = "all_hidden",
                 .inputs = {f32({1, 1, 2, 4}), f32({1, 1, 3, 4}), f32({1, 1, 3, 4}), boolean({2, 3})},
                 .attrs = {{"logsumexp", true}},
                 .given = {{3, bool_data({2, 3}, {0, 0, 0, 1, 0, 1})}}});
}

Op attention() {
  Op op = {
      {.name = "attention",
       .doc = "softmax(mask(cap(q k^T * scale))) v. Head h reads group h * G / H of k and v; a query that sees no key "
              "gives 0. What the graphs capture follows a mask: true where there is none. Neither gets a gradient: "
              "attention_backward gives those of q, k and v alone.",
       .version = 2,
       .flags = op_flags::fewer_results,
       .args = {{"q", "[B, H, T, D]", float_types},
                {"k", "[B, G, S, D]; G divides H", float_types},
                {"v", "[B, G, S, E]", float_types},
                {"mask", "broadcasts to [B, H, T, S]: bool (true: visible), or numbers to add",
                 float_types | dtypes(DType::boolean), Arity::optional, /*same_dtype=*/false},
                {"captured", "both graphs' last inputs; small floats as f32", any_type, Arity::variadic,
                 /*same_dtype=*/false}},
       .result_names = {"y", "logsumexp"},
       .attrs = attention_attrs(),
       .infer = infer_attention},
      {.decompose = decompose_attention,
       .reference = reference_attention,
       .gradient = by_rule("q, k, v"),
       .samples = samples_attention}};
  op.attrs.insert(
      op.attrs.end(),
      {{.name = "score_graph",
        .doc = "what becomes of the scores before masks: of score [B, H, T, S], in f32 or f64, and the numbers batch "
               "[B, 1, 1, 1], head [1, H, 1, 1], query [1, 1, T, 1] and key [1, 1, 1, S], in i64",
        .kind = AttrKind::graph},
       {.name = "mask_graph", .doc = "of the same but score: which are visible, a bool each", .kind = AttrKind::graph},
       flag("logsumexp", "a second result [B, H, T], f32 or f64: the log of what softmax divides by", false)});
  return op;
}

const Op attention_records[] = {attention()};

}  // namespace

std::span<const Op> attention_ops() { return attention_records; }

}  // namespace kiln::ops
