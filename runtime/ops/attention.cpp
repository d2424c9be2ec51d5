// Attention: softmax(q k^T * scale + mask) v, with grouped heads.
#include <cmath>

#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

enum Operand : size_t { q_arg, k_arg, v_arg, mask_arg };

// q [B, H, T, D], k [B, G, S, D], v [B, G, S, E]: H = G * R.
struct Sizes {
  Dim batch, heads, groups, repeats, rows, keys, depth, width;
};
Sizes sizes_of(const TensorType &q, const TensorType &k, const TensorType &v) {
  const Dim repeats = q.dims[1] == k.dims[1] ? Dim(1) : floor_div(q.dims[1], k.dims[1]);
  return {q.dims[0], q.dims[1], k.dims[1], repeats, q.dims[2], k.dims[2], q.dims[3], v.dims[3]};
}

Status infer_attention(InferContext &c) {
  for (size_t k : {q_arg, k_arg, v_arg}) KILN_TRY(require_rank(c, k, 4));
  const TensorType &q = c.inputs[q_arg], &k = c.inputs[k_arg], &v = c.inputs[v_arg];
  KILN_TRY(c.require_equal(q.dims[0], k.dims[0], "q dim 0 and k dim 0"));
  KILN_TRY(c.require_equal(q.dims[3], k.dims[3], "q dim 3 and k dim 3"));
  for (size_t d : {0, 1, 2}) KILN_TRY(c.require_equal(k.dims[d], v.dims[d], str_cat("k dim ", d, " and v dim ", d)));
  const Sizes s = sizes_of(q, k, v);
  if (s.groups.is(0) || !(s.groups * s.repeats == s.heads))
    return c.fail("q has ", s.heads.text(), " heads, expected a multiple of the ", s.groups.text(),
                  " groups of k and v");
  const Shape scores = {s.batch, s.heads, s.rows, s.keys};
  if (c.inputs.size() > mask_arg) {
    const TensorType &mask = c.inputs[mask_arg];
    if (mask.dtype != DType::boolean && mask.dtype != q.dtype)
      return c.fail("q is ", name_of(q.dtype), ", mask is ", name_of(mask.dtype), "; expected bool or ",
                    name_of(q.dtype));
    if (mask.rank() > 4) return c.fail("mask is ", mask.text(), ", expected at most 4 dims");
    for (size_t d = 0, at = 4 - mask.rank(); d < mask.rank(); ++d)
      if (!mask.dims[d].is(1))
        KILN_TRY(c.require_equal(mask.dims[d], scores[at + d],
                                 str_cat("mask dim ", d, " and dim ", at + d, " of [B, H, T, S]")));
  }
  c.results = {make_type(q.dtype, {s.batch, s.heads, s.rows, s.width})};
  return {};
}

template <class Real>
Real scale_of(const AttrMap &attrs, int64_t depth) {
  const Real scale = attrs.find("scale")->second.f64();
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<Real>(depth));
}

// The decomposition's steps. Scores are [B, G, R, T, S]: heads of one group share k and v by broadcasting.
struct Decomposition {
  DecomposeContext &c;
  const Sizes s;
  const DType dtype;

  Result<ValueId> reshape(ValueId x, Shape shape) {
    return c.add("reshape", {x}, {{"shape", AttrValue(std::move(shape))}});
  }
  Result<ValueId> one_repeat(ValueId x) { return c.add("unsqueeze", {x}, {{"dims", ints({2})}}); }

  Result<ValueId> scale() {
    if (c.attr("scale").f64() != 0 || s.depth.is_integer())
      return c.scalar(dtype, scale_of<double>(c.node.attrs, s.depth.is_integer() ? s.depth.integer() : 0));
    KILN_ASSIGN(ValueId depth, c.count(dtype, s.depth));
    return c.add("rsqrt", {depth});
  }

  Result<ValueId> scaled_scores() {
    KILN_ASSIGN(ValueId q, reshape(c.node.inputs[q_arg], {s.batch, s.groups, s.repeats, s.rows, s.depth}));
    KILN_ASSIGN(ValueId k, one_repeat(c.node.inputs[k_arg]));
    KILN_ASSIGN(ValueId scores, c.add("matmul", {q, k}, {{"transpose_b", true}}));
    KILN_ASSIGN(ValueId factor, scale());
    return c.add("mul", {scores, factor});
  }

  // The operand `mask`, as [B or 1, G or 1, R or 1, T or 1, S or 1].
  Result<ValueId> grouped_mask() {
    const ValueId mask = c.node.inputs[mask_arg];
    Shape shape = c.type(mask).dims;
    shape.insert(shape.begin(), 4 - shape.size(), Dim(1));
    const bool all_heads = shape[1].is(1);
    shape[1] = all_heads ? Dim(1) : s.groups;
    shape.insert(shape.begin() + 2, all_heads ? Dim(1) : s.repeats);
    return reshape(mask, std::move(shape));
  }

  // Whether key j is visible to query i: j <= i + (S - T), as [T, S].
  Result<ValueId> causal_mask() {
    KILN_ASSIGN(ValueId rows, c.add("iota", {}, {{"shape", AttrValue(Shape{s.rows, 1})}, {"dim", 0}}));
    KILN_ASSIGN(ValueId keys, c.add("iota", {}, {{"shape", AttrValue(Shape{1, s.keys})}, {"dim", 1}}));
    KILN_ASSIGN(ValueId ahead, c.count(DType::i64, s.keys - s.rows));
    KILN_ASSIGN(ValueId last, c.add("add", {rows, ahead}));
    return c.add("le", {keys, last});
  }

  Result<ValueId> masked(ValueId scores, ValueId visible) {
    KILN_ASSIGN(ValueId hidden, c.scalar(dtype, -infinity));
    return c.add("where", {visible, scores, hidden});
  }

  Result<ValueId> masked_scores() {
    KILN_ASSIGN(ValueId scores, scaled_scores());
    if (c.node.inputs.size() > mask_arg) {
      KILN_ASSIGN(ValueId mask, grouped_mask());
      if (c.type(mask).dtype == DType::boolean) {
        KILN_ASSIGN(scores, masked(scores, mask));
      } else {
        KILN_ASSIGN(scores, c.add("add", {scores, mask}));
      }
    }
    if (!c.attr("causal").boolean()) return scores;
    KILN_ASSIGN(ValueId visible, causal_mask());
    return masked(scores, visible);
  }

  // Softmax, but 0 where no key is visible: there max is -inf and the sum is 0, and either is replaced.
  Result<ValueId> weights(ValueId scores) {
    const AttrMap along = {{"dims", ints({-1})}, {"keepdim", true}};
    KILN_ASSIGN(ValueId zero, c.scalar(dtype, 0));
    KILN_ASSIGN(ValueId one, c.scalar(dtype, 1));
    KILN_ASSIGN(ValueId lowest, c.scalar(dtype, -infinity));
    KILN_ASSIGN(ValueId max, c.add("max", {scores}, along));
    KILN_ASSIGN(ValueId none, c.add("eq", {max, lowest}));
    KILN_ASSIGN(ValueId finite, c.add("where", {none, zero, max}));
    KILN_ASSIGN(ValueId below, c.add("sub", {scores, finite}));
    KILN_ASSIGN(ValueId exp, c.add("exp", {below}));
    KILN_ASSIGN(ValueId sum, c.add("sum", {exp}, along));
    KILN_ASSIGN(ValueId divisor, c.add("where", {none, one, sum}));
    return c.add("div", {exp, divisor});
  }
};

Status decompose_attention(DecomposeContext &c) {
  const TensorType q = c.type(c.node.inputs[q_arg]), k = c.type(c.node.inputs[k_arg]), v = c.type(c.node.inputs[v_arg]);
  Decomposition steps{c, sizes_of(q, k, v), q.dtype};
  const Sizes &s = steps.s;
  KILN_ASSIGN(ValueId scores, steps.masked_scores());
  KILN_ASSIGN(ValueId weights, steps.weights(scores));
  KILN_ASSIGN(ValueId values, steps.one_repeat(c.node.inputs[v_arg]));
  KILN_ASSIGN(ValueId grouped, c.add("matmul", {weights, values}));
  KILN_ASSIGN(ValueId y, steps.reshape(grouped, {s.batch, s.heads, s.rows, s.width}));
  c.results = {y};
  return {};
}

Status reference_attention(ReferenceContext &c) {
  const RefTensor &q = *c.inputs[q_arg], &k = *c.inputs[k_arg], &v = *c.inputs[v_arg];
  const int64_t heads = q.shape[1], groups = k.shape[1], rows = q.shape[2], keys = k.shape[2], depth = q.shape[3],
                width = v.shape[3];
  const RefTensor *mask = c.inputs.size() > mask_arg ? c.inputs[mask_arg] : nullptr;
  const std::vector<int64_t> score_shape = {q.shape[0], heads, rows, keys};
  const std::vector<int64_t> mask_strides =
      mask ? broadcast_strides(mask->shape, score_shape) : std::vector<int64_t>(4, 0);
  const bool causal = c.attr("causal").boolean();
  // For each query (b, h, i): its offset among the queries, and in the mask.
  const std::vector<int64_t> query_shape = {q.shape[0], heads, rows};
  int64_t query = 0;
  const std::vector<int64_t> query_strides(mask_strides.begin(), mask_strides.end() - 1);
  return with_wide(q, [&](auto wide) -> Status {
    using Wide = decltype(wide);
    const Wide scale = scale_of<Wide>(c.attrs, depth);
    std::vector<Wide> weights(static_cast<size_t>(keys));
    walk<1>(query_shape, {query_strides}, [&](auto at) {
      const int64_t i = query % rows, h = query / rows % heads, b = query / rows / heads;
      const int64_t first_key = (b * groups + h * groups / heads) * keys;
      Wide max = -infinity, sum = 0;
      for (int64_t j = 0; j < keys; ++j) {
        Wide score = 0;
        for (int64_t d = 0; d < depth; ++d)
          score += Wide(q.f[static_cast<size_t>(query * depth + d)]) *
                   Wide(k.f[static_cast<size_t>((first_key + j) * depth + d)]);
        score *= scale;
        const auto mask_at = static_cast<size_t>(at[0] + j * mask_strides[3]);
        if (mask && mask->is_float()) score += mask->f[mask_at];
        if ((mask && !mask->is_float() && !mask->i[mask_at]) || (causal && j > i + keys - rows)) score = -infinity;
        weights[static_cast<size_t>(j)] = score;
        max = std::isnan(score) ? score : std::max(max, score);  // a NaN stays
      }
      for (Wide &weight : weights) sum += weight = max == -infinity ? Wide(0) : std::exp(weight - max);
      for (int64_t e = 0; e < width; ++e) {
        Wide total = 0;
        for (int64_t j = 0; j < keys; ++j)
          total += weights[static_cast<size_t>(j)] * Wide(v.f[static_cast<size_t>((first_key + j) * width + e)]);
        c.results[0].f[static_cast<size_t>(query * width + e)] = static_cast<double>(total / (sum == 0 ? 1 : sum));
      }
      ++query;
    });
    return {};
  });
}

void samples_attention(SampleSink &out) {
  const Dim b = sym("b"), t = sym("t"), s = sym("s");
  auto sample = [&](const char *name, Shape q, Dim groups, Dim keys, int64_t width, AttrMap attrs = {},
                    std::vector<TensorType> mask = {}, std::map<std::string, int64_t> sizes = {}) {
    const TensorType k = f32({q[0], groups, keys, q[3]}), v = f32({q[0], groups, keys, width});
    Sample made{
        .name = name, .inputs = {f32(std::move(q)), k, v}, .attrs = std::move(attrs), .sizes = std::move(sizes)};
    made.inputs.insert(made.inputs.end(), mask.begin(), mask.end());
    out.push_back(std::move(made));
  };
  const AttrMap causal = {{"causal", true}};
  sample("plain", {2, 3, 7, 8}, 3, 9, 8);
  sample("other_width", {1, 2, 5, 16}, 2, 17, 33);
  sample("given_scale", {1, 2, 5, 8}, 2, 5, 8, {{"scale", 0.3}});
  sample("grouped_heads", {2, 6, 7, 8}, 2, 9, 5);
  sample("one_group", {1, 4, 17, 16}, 1, 17, 16, causal);
  sample("causal", {2, 2, 17, 8}, 2, 17, 8, causal);
  sample("causal_more_keys", {1, 2, 3, 8}, 2, 17, 8, causal);
  sample("causal_fewer_keys", {1, 2, 9, 8}, 2, 5, 8, causal);  // the first queries see nothing: 0
  sample("one_query", {1, 4, 1, 8}, 2, 33, 8, causal);
  sample("no_queries", {1, 2, 0, 8}, 2, 5, 8);
  sample("no_keys", {1, 2, 3, 8}, 2, 0, 8);
  sample("mask", {2, 2, 5, 8}, 2, 9, 8, {}, {boolean({5, 9})});
  sample("mask_for_each_head", {2, 4, 5, 8}, 2, 9, 8, {}, {boolean({2, 4, 5, 9})});
  sample("mask_for_each_batch", {2, 4, 5, 8}, 2, 9, 8, causal, {boolean({2, 1, 1, 9})});
  sample("float_mask", {2, 4, 5, 8}, 4, 9, 8, {}, {f32({4, 1, 9})});
  sample("symbolic", {b, 4, t, 16}, 2, t, 16, causal, {}, {{"b", 2}, {"t", 7}});
  sample("symbolic_keys", {b, 4, t, 16}, 4, s, 8, causal, {}, {{"b", 1}, {"t", 3}, {"s", 9}});
  sample("symbolic_one", {b, 2, t, 8}, 1, t, 8, causal, {}, {{"b", 1}, {"t", 1}});
  sample("symbolic_mask", {b, 2, t, 8}, 2, s, 8, {}, {boolean({b, 1, t, s})}, {{"b", 2}, {"t", 5}, {"s", 4}});
  // A NaN makes its query's row NaN, and an infinite value the rows that weigh it, even by 0.
  sample("not_finite", {1, 1, 3, 2}, 1, 2, 1);
  out.back().given = {{0, f32_data({1, 1, 3, 2}, {1, 2, NAN, 1, -INFINITY, 0})},
                      {1, f32_data({1, 1, 2, 2}, {1, 0.5f, 2, 1})},
                      {2, f32_data({1, 1, 2, 1}, {3, INFINITY})}};
  out.push_back({.name = "all_hidden",
                 .inputs = {f32({1, 1, 2, 4}), f32({1, 1, 3, 4}), f32({1, 1, 3, 4}), boolean({2, 3})},
                 .given = {{3, bool_data({2, 3}, {0, 0, 0, 1, 0, 1})}}});
}

const Op records[] = {
    {{.name = "attention",
      .doc =
          "softmax(q k^T * scale + mask) v. Head h reads group h * G / H of k and v; a query that sees no key gives 0.",
      .args = {{"q", "[B, H, T, D]", float_types},
               {"k", "[B, G, S, D]; G divides H", float_types},
               {"v", "[B, G, S, E]", float_types},
               {"mask", "broadcasts to [B, H, T, S]: bool (true: visible), or numbers to add",
                float_types | dtypes(DType::boolean), Arity::optional, /*same_dtype=*/false}},
      .result_names = {"y"},
      .attrs = {{.name = "causal",
                 .doc = "query i sees key j only if j <= i + (S - T)",
                 .kind = AttrKind::boolean,
                 .fallback = false},
                {.name = "scale", .doc = "0: 1 / sqrt(D)", .kind = AttrKind::f64, .fallback = 0.0}},
      .infer = infer_attention},
     {.decompose = decompose_attention,
      .reference = reference_attention,
      .gradient = by_rule("q, k, v, mask"),
      .samples = samples_attention}},
};

}  // namespace

std::span<const Op> attention_ops() { return records; }

}  // namespace kiln::ops
