// What attention and its gradients share.
#include "runtime/ops/attention.h"

namespace kiln::ops {

AttentionSizes::AttentionSizes(const TensorType &q, const TensorType &k, const TensorType &v)
    : batch(q.dims[0]),
      heads(q.dims[1]),
      groups(k.dims[1]),
      repeats(heads == groups ? Dim(1) : floor_div(heads, groups)),
      rows(q.dims[2]),
      keys(k.dims[2]),
      depth(q.dims[3]),
      width(v.dims[3]) {}

Result<AttentionSizes> infer_attention_operands(InferContext &c, size_t mask_arg) {
  for (size_t k : {q_arg, k_arg, v_arg}) KILN_TRY(require_rank(c, k, 4));
  const TensorType &q = c.inputs[q_arg], &k = c.inputs[k_arg], &v = c.inputs[v_arg];
  KILN_TRY(c.require_equal(q.dims[0], k.dims[0], "q dim 0 and k dim 0"));
  KILN_TRY(c.require_equal(q.dims[3], k.dims[3], "q dim 3 and k dim 3"));
  for (size_t d : {0, 1, 2}) KILN_TRY(c.require_equal(k.dims[d], v.dims[d], str_cat("k dim ", d, " and v dim ", d)));
  if (k.dims[1].is(0)) return c.fail("k has no groups for q's ", q.dims[1].text(), " heads");
  AttentionSizes s(q, k, v);
  if (!(s.groups * s.repeats == s.heads))
    return c.fail("q has ", s.heads.text(), " heads, expected a multiple of the ", s.groups.text(),
                  " groups of k and v");
  KILN_TRY(require_integers(c, "window", 2, -1));
  KILN_TRY(require_finite(c, "scale"));
  if (const double cap = c.attr("softcap").f64(); !(cap >= 0) || cap == infinity)
    return c.fail("softcap is ", cap, ", expected a number above 0, or 0: none");
  if (c.inputs.size() <= mask_arg) return s;
  const TensorType &mask = c.inputs[mask_arg];
  if (mask.dtype != DType::boolean && mask.dtype != q.dtype)
    return c.fail("q is ", name_of(q.dtype), ", mask is ", name_of(mask.dtype), "; expected bool or ",
                  name_of(q.dtype));
  if (mask.rank() > 4) return c.fail("mask is ", mask.text(), ", expected at most 4 dims");
  for (size_t d = 0, at = 4 - mask.rank(); d < mask.rank(); ++d)
    if (!mask.dims[d].is(1))
      KILN_TRY(c.require_equal(mask.dims[d], s.scores()[at + d],
                               str_cat("mask dim ", d, " and dim ", at + d, " of [B, H, T, S]")));
  return s;
}

std::vector<AttrDef> attention_attrs() {
  return {flag("causal", "query i sees key j only if j <= i + (S - T)", false),
          list("window",
               "left and right: query i sees keys from i + (S - T) - left to i + (S - T) + right; -1: all on that side",
               {-1, -1}),
          number("scale", "0: 1 / sqrt(D)", 0),
          number("softcap", "scaled scores become cap * tanh(score / cap); 0: they stay", 0)};
}

Reach reach_of(const AttrMap &attrs) {
  const std::vector<int64_t> &window = attrs.find("window")->second.i64_list();
  return {window[0], attrs.find("causal")->second.boolean() ? 0 : window[1]};
}

long double attention_scale(const AttrMap &attrs, int64_t depth) {
  const double scale = attrs.find("scale")->second.f64();
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<long double>(depth));
}

// ---- steps of decompositions

Scoring::Scoring(DecomposeContext &c, Composer &g)
    : sizes(c.type(c.node.inputs[q_arg]), c.type(c.node.inputs[k_arg]), c.type(c.node.inputs[v_arg])),
      dtype(c.type(c.node.inputs[q_arg]).dtype),
      c_(c),
      g_(g) {}

ValueId Scoring::grouped(ValueId x) {
  if (!g_.ok()) return x;
  Shape shape = c_.type(x).dims;
  shape.insert(shape.begin(), shape.size() < 4 ? 4 - shape.size() : 0, Dim(1));
  const bool all_heads = shape[1].is(1);
  shape[1] = all_heads ? Dim(1) : sizes.groups;
  shape.insert(shape.begin() + 2, all_heads ? Dim(1) : sizes.repeats);
  return reshape(x, std::move(shape));
}

ValueId Scoring::scale() {
  const ValueId q = c_.node.inputs[q_arg];
  if (c_.attr("scale").f64() != 0 || sizes.depth.is_integer())
    return g_.number(
        q, static_cast<double>(attention_scale(c_.node.attrs, sizes.depth.is_integer() ? sizes.depth.integer() : 0)));
  return g_("rsqrt", {g_.count(q, sizes.depth)});
}

ValueId Scoring::scaled() {
  const AttentionSizes &s = sizes;
  const ValueId q = reshape(c_.node.inputs[q_arg], {s.batch, s.groups, s.repeats, s.rows, s.depth});
  const ValueId scores = g_("matmul", {q, one_repeat(c_.node.inputs[k_arg])}, {{"transpose_b", true}});
  return g_("mul", {scores, scale()});
}

ValueId Scoring::capped(ValueId scores, ValueId *tanh) {
  const double cap = c_.attr("softcap").f64();
  if (cap == 0) return scores;
  const ValueId part = g_("tanh", {g_("div", {scores, g_.number(scores, cap)})});
  if (tanh) *tanh = part;
  return g_("mul", {part, g_.number(scores, cap)});
}

ValueId Scoring::masked(ValueId scores, ValueId visible) {
  return g_("where", {visible, scores, g_.number(scores, -infinity)});
}

ValueId Scoring::masked_by(ValueId scores, ValueId mask) {
  const ValueId by_groups = grouped(mask);
  if (!g_.ok()) return scores;
  return c_.type(mask).dtype == DType::boolean ? masked(scores, by_groups) : g_("add", {scores, by_groups});
}

ValueId Scoring::numbers(const Dim &size, size_t dim, size_t rank) {
  Shape shape(rank, 1);
  shape[dim] = size;
  return g_("iota", {}, {{"shape", AttrValue(std::move(shape))}, {"dim", static_cast<int64_t>(dim)}});
}

ValueId Scoring::masked_by_place(ValueId scores) {
  const Reach reach = reach_of(c_.node.attrs);
  if (reach.left < 0 && reach.right < 0) return scores;
  const ValueId rows = numbers(sizes.rows, 0, 2), keys = numbers(sizes.keys, 1, 2);
  const auto from_row = [&](int64_t steps) {
    return g_("add", {rows, g_.count(rows, sizes.keys - sizes.rows + steps)});
  };
  ValueId visible;
  if (reach.right >= 0) visible = g_("le", {keys, from_row(reach.right)});
  if (reach.left >= 0) {
    const ValueId begun = g_("ge", {keys, from_row(-reach.left)});
    visible = reach.right >= 0 ? g_("and", {visible, begun}) : begun;
  }
  return masked(scores, visible);
}

// ---- reference kernels

RefScores::RefScores(const ReferenceContext &c, size_t mask)
    : batch(c.inputs[q_arg]->shape[0]),
      heads(c.inputs[q_arg]->shape[1]),
      groups(c.inputs[k_arg]->shape[1]),
      rows(c.inputs[q_arg]->shape[2]),
      keys(c.inputs[k_arg]->shape[2]),
      depth(c.inputs[q_arg]->shape[3]),
      width(c.inputs[v_arg]->shape[3]),
      c_(c),
      q_(*c.inputs[q_arg]),
      k_(*c.inputs[k_arg]),
      mask_(c.inputs.size() > mask ? c.inputs[mask] : nullptr),
      mask_floats_(*c.inputs[mask_ ? mask : size_t{q_arg}]),
      mask_integers_(*c.inputs[mask_ ? mask : size_t{q_arg}]),
      reach_(reach_of(c.attrs)) {
  if (mask_) mask_strides_ = broadcast_strides(mask_->shape, std::vector<int64_t>{batch, heads, rows, keys});
}

RefScores::Wide RefScores::scaled(int64_t query, int64_t key) const {
  const auto q = static_cast<size_t>(query * depth), k = static_cast<size_t>(row(query, key) * depth);
  Wide score = 0;
  for (size_t d = 0; d < static_cast<size_t>(depth); ++d) score += Wide(q_[q + d]) * k_[k + d];
  return score * attention_scale(c_.attrs, depth);
}

RefScores::Wide RefScores::capped(Wide score) const {
  const Wide cap = c_.attr("softcap").f64();
  return cap == 0 ? score : cap * std::tanh(score / cap);
}

RefScores::Wide RefScores::masked(Wide score, int64_t query, int64_t key) const {
  const int64_t i = query % rows, ahead = key - (i + keys - rows);
  if ((reach_.right >= 0 && ahead > reach_.right) || (reach_.left >= 0 && -ahead > reach_.left)) return -infinity;
  if (!mask_) return score;
  const int64_t at[] = {query / rows / heads, query / rows % heads, i, key};
  size_t offset = 0;
  for (size_t d = 0; d < 4; ++d) offset += static_cast<size_t>(at[d] * mask_strides_[d]);
  if (mask_->is_float()) return score + mask_floats_[offset];
  return mask_integers_[offset] ? score : -infinity;
}

}  // namespace kiln::ops
