// The gradients of attention, from its result and logsumexp: softmax's weights are computed once more, and not kept.
#include <cstdio>
#include <cstdlib>

#include "runtime/ops/attention.h"
#include "runtime/ops/backward.h"
#include "runtime/ops/reference.h"
#include "runtime/ops/sample_shapes.h"

namespace kiln::ops {
namespace {

enum Arg : size_t { y_arg = 3, lse_arg, dy_arg, mask_arg };

Status infer_attention_backward(InferContext &c) {
  KILN_ASSIGN(const AttentionSizes s, infer_attention_operands(c, mask_arg));
  const Shape shapes[] = {s.results(), {s.batch, s.heads, s.rows}, s.results()};
  for (size_t k = y_arg; k <= dy_arg; ++k) {
    const Shape &expected = shapes[k - y_arg];
    KILN_TRY(require_rank(c, k, expected.size()));
    for (size_t d = 0; d < expected.size(); ++d)
      KILN_TRY(
          c.require_equal(c.inputs[k].dims[d], expected[d], str_cat(c.arg_name(k), " dim ", d, " and attention's")));
  }
  for (size_t k : {q_arg, k_arg, v_arg}) c.results.push_back(make_type(c.inputs[k].dtype, c.inputs[k].dims));
  return {};
}

// With P the weights: dv = P^T dy; the scores' gradient is P * (dy v^T - sum of dy * y), which the cap multiplies by
// 1 - tanh^2. Queries of the heads of one group are rows of one matrix, so that products add up over them.
Status decompose_attention_backward(DecomposeContext &c) {
  Composer g(c);
  Scoring steps(c, g);
  const AttentionSizes &s = steps.sizes;
  const std::vector<ValueId> &in = c.node.inputs;
  const auto by_query = [&](ValueId x) { return steps.reshape(x, {s.batch, s.groups, s.repeats, s.rows, 1}); };
  const auto by_group = [&](ValueId x, const Dim &width) {
    return steps.reshape(x, {s.batch, s.groups, s.repeats * s.rows, width});
  };
  const auto product = [&](ValueId a, ValueId b, const char *transposed = "") {
    return g("matmul", {a, b}, *transposed ? AttrMap{{transposed, true}} : AttrMap{});
  };

  ValueId tanh;
  ValueId scores = steps.capped(steps.scaled(), &tanh);
  if (in.size() > mask_arg) scores = steps.masked_by(scores, in[mask_arg]);
  scores = steps.masked_by_place(scores);
  ValueId lse = in[lse_arg];
  if (c.type(lse).dtype != steps.dtype) lse = g.convert(lse, steps.dtype);
  lse = by_query(lse);
  const ValueId none = g("eq", {lse, g.number(lse, -infinity)});  // such a query sees no key
  const ValueId weights = g("exp", {g("sub", {scores, g("where", {none, g.number(lse, 0), lse})})});

  const ValueId dy = steps.reshape(in[dy_arg], {s.batch, s.groups, s.repeats, s.rows, s.width});
  const ValueId along = g("sum", {g("mul", {in[dy_arg], in[y_arg]})}, {{"dims", ints({-1})}});
  const ValueId dweights = product(dy, steps.one_repeat(in[v_arg]), "transpose_b");
  ValueId dscores = g("mul", {weights, g("sub", {dweights, by_query(along)})});
  if (c.attr("softcap").f64() != 0)
    dscores = g("mul", {dscores, g("sub", {g.number(tanh, 1), g("mul", {tanh, tanh})})});
  dscores = by_group(g("mul", {dscores, steps.scale()}), s.keys);

  const ValueId dq = steps.reshape(product(dscores, in[k_arg]), {s.batch, s.heads, s.rows, s.depth});
  const ValueId dk = product(dscores, by_group(in[q_arg], s.depth), "transpose_a");
  const ValueId dv = product(by_group(weights, s.keys), by_group(in[dy_arg], s.width), "transpose_a");
  return g.give({dq, dk, dv});
}

Status reference_attention_backward(ReferenceContext &c) {
  const RefScores s(c, mask_arg);
  std::vector<ReadElements<double>> operands;
  for (const RefTensor *operand : c.inputs) operands.emplace_back(*operand);
  const auto at = [&](size_t operand, int64_t k) { return Wide(operands[operand][static_cast<size_t>(k)]); };
  std::vector<std::vector<Wide>> sums;
  for (const RefTensor &result : c.results) sums.emplace_back(result.size());
  const auto add_to = [&](size_t result, int64_t k, Wide x) { sums[result][static_cast<size_t>(k)] += x; };
  const Wide scale = attention_scale(c.attrs, s.depth), cap = c.attr("softcap").f64();
  const auto spread = [&](int64_t query) {
    const Wide lse = at(lse_arg, query);
    Wide along = 0;
    for (int64_t e = query * s.width; e < (query + 1) * s.width; ++e) along += at(dy_arg, e) * at(y_arg, e);
    for (int64_t j = 0; j < s.keys; ++j) {
      const int64_t row = s.row(query, j);
      const Wide raw = s.scaled(query, j), score = s.capped(raw);
      const Wide weight = std::exp(s.masked(score, query, j) - (lse == -infinity ? Wide(0) : lse));
      Wide dweight = 0;
      for (int64_t e = 0; e < s.width; ++e) {
        dweight += at(dy_arg, query * s.width + e) * at(v_arg, row * s.width + e);
        add_to(2, row * s.width + e, weight * at(dy_arg, query * s.width + e));
      }
      Wide dscore = weight * (dweight - along) * scale;
      if (cap != 0) dscore *= 1 - (score / cap) * (score / cap);
      for (int64_t d = 0; d < s.depth; ++d) {
        add_to(0, query * s.depth + d, dscore * at(k_arg, row * s.depth + d));
        add_to(1, row * s.depth + d, dscore * at(q_arg, query * s.depth + d));
      }
    }
  };
  // The queries of a group add to the keys and values of no other.
  const int64_t queries = s.groups > 0 ? s.heads / s.groups * s.rows : 0, work = s.keys * (s.depth + s.width);
  KILN_TRY(c.for_ranges(s.batch * s.groups, queries * work, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t query = begin * queries; query < end * queries; ++query) spread(query);
    return {};
  }));
  for (size_t k = 0; k < sums.size(); ++k) give_all(c.results[k], sums[k]);
  return {};
}

// ---- samples

// What a report writes of numbers, whose reader must get the same.
double with_15_digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", x);
  return std::strtod(text, nullptr);
}

// y and logsumexp as attention gives them at f64 elements: the gradients of the whole.
void give_results(Sample &sample, const Op &attention) {
  std::vector<RefTensor> operands;
  for (size_t k = 0; k < sample.inputs.size(); ++k) {
    if (k == y_arg || k == lse_arg || k == dy_arg) continue;
    TensorType &type = sample.inputs[k];
    RefTensor operand{DType::f64, {}, {}, {}};
    for (const Dim &dim : type.dims) operand.shape.push_back(dim.integer());
    for (int64_t i = 0; i < operand.size(); ++i)
      operand.f.push_back(static_cast<double>((i * 37 + static_cast<int64_t>(k) * 11) % 29 - 14) / 8);
    operands.push_back(std::move(operand));
    type.dtype = DType::f64;
    sample.given.emplace(k, from_reference(operands.back()));
  }
  AttrMap attrs = sample.attrs;
  attrs.emplace("logsumexp", true);
  [[maybe_unused]] const Status complete = complete_attrs(attention, attrs);
  std::vector<const RefTensor *> inputs;
  for (const RefTensor &operand : operands) inputs.push_back(&operand);
  std::vector<RefTensor> results(2, RefTensor{DType::f64, {}, {}, {}});
  for (size_t k = 0; k < 2; ++k) {
    TensorType &type = sample.inputs[y_arg + k];
    type.dtype = DType::f64;
    for (const Dim &dim : type.dims) results[k].shape.push_back(dim.integer());
    results[k].allocate();
  }
  ReferenceContext context{attention, inputs, results, attrs, {}, {}};
  [[maybe_unused]] const Status computed = attention.reference(context);
  assert(complete.ok() && computed.ok());
  for (size_t k = 0; k < 2; ++k) {
    for (double &x : results[k].f) x = with_15_digits(x);
    sample.given.emplace(y_arg + k, from_reference(results[k]));
  }
  sample.inputs[dy_arg].dtype = DType::f64;
}

void samples_attention_backward(SampleSink &out) {
  // q's shape, and groups, keys and width.
  const auto sample = [&](const char *name, const char *queries, const char *others, AttrMap attrs = {},
                          std::vector<TensorType> mask = {}, std::map<std::string, int64_t> sizes = {}) -> Sample & {
    const Shape q = shape_from(queries), of = shape_from(others);
    const TensorType y = f32({q[0], q[1], q[2], of[2]});
    Sample made{.name = name,
                .inputs = {f32(q), f32({q[0], of[0], of[1], q[3]}), f32({q[0], of[0], of[1], of[2]}), y,
                           f32({q[0], q[1], q[2]}), y},
                .attrs = std::move(attrs),
                .sizes = std::move(sizes)};
    made.inputs.insert(made.inputs.end(), mask.begin(), mask.end());
    return out.emplace_back(std::move(made));
  };
  sample("plain", "2, 2, 3, 4", "2, 5, 3", {{"scale", 0.25}});
  sample("causal", "1, 4, 5, 4", "2, 5, 3", {{"causal", true}, {"scale", 0.25}});
  sample("mask", "1, 2, 3, 4", "1, 5, 3", {{"scale", 0.125}}, {boolean({3, 5})});
  sample("no_queries", "1, 2, 0, 4", "2, 3, 3");
  sample("no_keys", "1, 2, 3, 4", "2, 0, 3");
  sample("symbolic", "b, 2, t, 4", "1, s, 3", {{"scale", 0.25}, {"window", ints({1, 1})}}, {},
         {{"b", 2}, {"t", 3}, {"s", 4}});
  sample("small_floats", "1, 2, 3, 4", "1, 4, 3", {{"scale", 0.125}});
  for (size_t k = 0; k < out.back().inputs.size(); ++k)
    if (k != lse_arg) out.back().inputs[k].dtype = DType::f16;
  const Op &attention = *find_op("attention");
  give_results(sample("whole", "2, 4, 3, 5", "2, 4, 3"), attention);
  give_results(sample("whole_causal", "1, 2, 5, 4", "1, 3, 3", {{"causal", true}}), attention);  // two see nothing
  give_results(sample("whole_window", "1, 2, 5, 4", "2, 5, 3", {{"window", ints({1, 2})}, {"scale", 0.75}}), attention);
  give_results(sample("whole_capped", "1, 2, 3, 4", "1, 4, 3", {{"softcap", 0.75}, {"causal", true}},
                      {make_type(DType::f64, {2, 1, 4})}),
               attention);
}

Op attention_backward() {
  return {{.name = "attention_backward",
           .doc = "The gradients of attention's q, k and v; of attention without graphs. A mask has no gradient.",
           .args = {{"q", "[B, H, T, D]", float_types},
                    {"k", "[B, G, S, D]; G divides H", float_types},
                    {"v", "[B, G, S, E]", float_types},
                    {"y", "attention's, [B, H, T, E]", float_types},
                    {"logsumexp", "attention's, [B, H, T]", float_types, Arity::one, /*same_dtype=*/false},
                    {"dy", "y's gradient", float_types},
                    {"mask", "attention's", float_types | dtypes(DType::boolean), Arity::optional,
                     /*same_dtype=*/false}},
           .result_names = {"dq", "dk", "dv"},
           .attrs = attention_attrs(),
           .infer = infer_attention_backward},
          {.decompose = decompose_attention_backward,
           .reference = reference_attention_backward,
           .gradient = through_decomposition(),
           .samples = samples_attention_backward}};
}

const Op attention_backward_records[] = {attention_backward()};

}  // namespace

std::span<const Op> attention_backward_ops() { return attention_backward_records; }

}  // namespace kiln::ops
