// What attention and its gradients share: sizes, scores, and which keys a query sees. For the files of this folder.
#pragma once
#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {

enum AttentionArg : uint32_t { q_arg, k_arg, v_arg };
// Of attention: its graphs' operands follow those of its own.
inline constexpr uint32_t first_captured = 4;
// How many inputs of attention's graph `attr` come before those: score, and the four indices.
inline uint32_t made_inputs(std::string_view attr) { return attr == "score_graph" ? 5 : 4; }

// q [B, H, T, D], k [B, G, S, D], v [B, G, S, E]: H = G * R.
struct AttentionSizes {
  Dim batch, heads, groups, repeats, rows, keys, depth, width;
  AttentionSizes(const TensorType &q, const TensorType &k, const TensorType &v);
  Shape scores() const { return {batch, heads, rows, keys}; }
  Shape results() const { return {batch, heads, rows, width}; }
};
// Checks of q, k and v, of operand `mask` if there is one, and of the attributes below.
Result<AttentionSizes> infer_attention_operands(InferContext &c, size_t mask);

// "causal", "window", "scale", "softcap".
std::vector<AttrDef> attention_attrs();

// Query i sees keys from i + (S - T) - left to i + (S - T) + right; below 0: all on that side.
struct Reach {
  int64_t left, right;
};
Reach reach_of(const AttrMap &attrs);

long double attention_scale(const AttrMap &attrs, int64_t depth);

// The steps of decompositions. Scores are [B, G, R, T, S]: heads of one group share k and v by broadcasting.
class Scoring {
 public:
  Scoring(DecomposeContext &c, Composer &g);

  ValueId reshape(ValueId x, Shape shape) { return g_("reshape", {x}, {{"shape", AttrValue(std::move(shape))}}); }
  ValueId one_repeat(ValueId x) { return g_("unsqueeze", {x}, {{"dims", ints({2})}}); }
  // [B, H, T, ...], by groups
  ValueId grouped(ValueId x);
  ValueId scale();
  ValueId scaled();  // q k^T * scale
  // cap * tanh(scores / cap); `tanh` gets that factor
  ValueId capped(ValueId scores, ValueId *tanh = nullptr);
  // With a mask that broadcasts to [B, H, T, S]: what is not visible is -inf.
  ValueId masked_by(ValueId scores, ValueId mask);
  // By "causal" and "window".
  ValueId masked_by_place(ValueId scores);
  // Row or key numbers, [..., T, 1] or [..., S]: `dim` of `rank` dims counts to `size`.
  ValueId numbers(const Dim &size, size_t dim, size_t rank);

  const AttentionSizes sizes;
  const DType dtype;

 private:
  ValueId masked(ValueId scores, ValueId visible);
  DecomposeContext &c_;
  Composer &g_;
};

// For reference kernels: one score after the other, by the offset of its query among q's, b * H * T + h * T + i.
class RefScores {
 public:
  using Wide = long double;
  RefScores(const ReferenceContext &c, size_t mask);

  // Of the key's or value's row that a query reads.
  int64_t row(int64_t query, int64_t key) const {
    const int64_t h = query / rows % heads, b = query / rows / heads;
    return (b * groups + h * groups / heads) * keys + key;
  }
  Wide scaled(int64_t query, int64_t key) const;
  Wide capped(Wide score) const;
  // -inf of what is hidden.
  Wide masked(Wide score, int64_t query, int64_t key) const;

  int64_t batch, heads, groups, rows, keys, depth, width;

 private:
  const ReferenceContext &c_;
  ReadElements<double> q_, k_;
  const RefTensor *mask_;
  ReadElements<double> mask_floats_;
  ReadElements<int64_t> mask_integers_;
  std::vector<int64_t> mask_strides_;
  Reach reach_;
};
Status reference_attention(ReferenceContext &c);

}  // namespace kiln::ops
