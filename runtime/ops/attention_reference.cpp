// The reference kernel of attention.
#include "runtime/ops/attention.h"
#include "runtime/ops/reference.h"

namespace kiln::ops {
namespace {

// What one of the graphs gives, or nothing where there is none.
Result<std::vector<RefTensor>> given_by(const ReferenceContext &c, std::string_view name, const RefScores &s,
                                        const RefTensor *score) {
  const AttrValue &graph = c.attr(name);
  if (graph.size() == 0) return std::vector<RefTensor>();
  std::vector<RefTensor> made;
  const int64_t sizes[] = {s.batch, s.heads, s.rows, s.keys};
  for (size_t d = 0; d < 4; ++d) {
    RefTensor &numbers = made.emplace_back(RefTensor{DType::i64, {1, 1, 1, 1}, {}, {}});
    numbers.shape[d] = sizes[d];
    for (int64_t k = 0; k < sizes[d]; ++k) numbers.i.push_back(k);
  }
  for (size_t k = first_captured; k < c.inputs.size(); ++k) {
    made.push_back(widened(*c.inputs[k]));
    made.back().dtype = dtype_info(made.back().dtype).computes_as;
  }
  std::vector<const RefTensor *> operands;
  if (score) operands.push_back(score);
  for (const RefTensor &operand : made) operands.push_back(&operand);
  return c.run_graph(*graph.graph(), operands);
}

// What score_graph makes of all scores, rounded to what they are computed in; nothing without one.
Result<std::vector<RefTensor>> modified_scores(const ReferenceContext &c, const RefScores &s,
                                               const std::vector<int64_t> &shape) {
  if (c.attr("score_graph").size() == 0) return std::vector<RefTensor>();
  RefTensor score{dtype_info(c.inputs[q_arg]->dtype).computes_as, shape, {}, {}};
  score.allocate();
  KILN_TRY(c.for_ranges(score.size(), s.depth, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t k = begin; k < end; ++k)
      score.f[static_cast<size_t>(k)] = static_cast<double>(s.capped(s.scaled(k / s.keys, k % s.keys)));
    return {};
  }));
  score.fit();
  return given_by(c, "score_graph", s, &score);
}

}  // namespace

Status reference_attention(ReferenceContext &c) {
  using Wide = RefScores::Wide;
  const RefScores s(c, 3);
  const std::vector<int64_t> shape = {s.batch, s.heads, s.rows, s.keys};
  KILN_ASSIGN(const std::vector<RefTensor> modified, modified_scores(c, s, shape));
  KILN_ASSIGN(const std::vector<RefTensor> visible, given_by(c, "mask_graph", s, nullptr));
  const RefTensor none;
  const ReadElements<double> scores(modified.empty() ? none : modified[0]), v(*c.inputs[v_arg]);
  const ReadElements<int64_t> shown(visible.empty() ? none : visible[0]);
  std::vector<int64_t> shown_at(4, 0);
  if (!visible.empty()) shown_at = broadcast_strides(visible[0].shape, shape);
  const WriteElements<double> out(c.results[0]), logarithms(c.results.back());
  // A row of scores, without the mask and what "causal" and "window" hide.
  const auto score_row = [&](int64_t query, std::vector<Wide> &row) {
    for (int64_t j = 0; j < s.keys; ++j) {
      const auto at = static_cast<size_t>(j);
      row[at] = modified.empty() ? s.capped(s.scaled(query, j)) : scores[static_cast<size_t>(query * s.keys + j)];
    }
    if (visible.empty()) return;
    walk_range<1>(shape, {shown_at}, query * s.keys, (query + 1) * s.keys, [&](size_t k, auto at) {
      if (!shown[static_cast<size_t>(at[0])]) row[k - static_cast<size_t>(query * s.keys)] = -infinity;
    });
  };
  const auto attend = [&](int64_t query, std::vector<Wide> &row) {
    Wide max = -infinity, sum = 0;
    score_row(query, row);
    for (int64_t j = 0; j < s.keys; ++j) {
      Wide &score = row[static_cast<size_t>(j)];
      score = s.masked(score, query, j);
      max = std::isnan(score) ? score : std::max(max, score);  // a NaN stays
    }
    const Wide base = max == -infinity ? Wide(0) : max;
    for (Wide &score : row) sum += score = std::exp(score - base);
    for (int64_t e = 0; e < s.width; ++e) {
      Wide total = 0;
      for (int64_t j = 0; j < s.keys; ++j)
        total += row[static_cast<size_t>(j)] * Wide(v[static_cast<size_t>(s.row(query, j) * s.width + e)]);
      out.set(static_cast<size_t>(query * s.width + e), static_cast<double>(total / (sum == 0 ? 1 : sum)));
    }
    if (c.results.size() > 1) logarithms.set(static_cast<size_t>(query), static_cast<double>(std::log(sum) + base));
  };
  const int64_t work = s.keys * (s.depth + s.width + 8);
  return c.for_ranges(s.batch * s.heads * s.rows, work, [&](int64_t begin, int64_t end) -> Status {
    std::vector<Wide> row(static_cast<size_t>(s.keys));
    for (int64_t query = begin; query < end; ++query) attend(query, row);
    return {};
  });
}

}  // namespace kiln::ops
