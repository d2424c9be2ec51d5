// The reference kernel of attention.
#include "runtime/ops/attention.h"

namespace kiln::ops {
namespace {

// What one of the graphs gives, or nothing where there is none.
Result<std::vector<RefTensor>> given_by(ReferenceContext &c, std::string_view name, const RefScores &s,
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
    made.push_back(*c.inputs[k]);
    made.back().dtype = dtype_info(made.back().dtype).computes_as;
  }
  std::vector<const RefTensor *> operands;
  if (score) operands.push_back(score);
  for (const RefTensor &operand : made) operands.push_back(&operand);
  return c.run_graph(*graph.graph(), operands);
}

}  // namespace

Status reference_attention(ReferenceContext &c) {
  using Wide = RefScores::Wide;
  const RefScores s(c, 3);
  const RefTensor &q = *c.inputs[q_arg], &v = *c.inputs[v_arg];
  const std::vector<int64_t> shape = {s.batch, s.heads, s.rows, s.keys};
  const auto keys = static_cast<size_t>(s.keys), width = static_cast<size_t>(s.width);
  const auto queries = static_cast<size_t>(s.batch * s.heads * s.rows);
  std::vector<Wide> scores;
  for (size_t query = 0; query < queries; ++query)
    for (size_t j = 0; j < keys; ++j)
      scores.push_back(s.capped(s.scaled(static_cast<int64_t>(query), static_cast<int64_t>(j))));
  RefTensor score{dtype_info(q.dtype).computes_as, shape, {scores.begin(), scores.end()}, {}};
  score.fit();
  KILN_ASSIGN(const std::vector<RefTensor> modified, given_by(c, "score_graph", s, &score));
  if (!modified.empty()) scores.assign(modified[0].f.begin(), modified[0].f.end());
  KILN_ASSIGN(const std::vector<RefTensor> visible, given_by(c, "mask_graph", s, nullptr));
  if (!visible.empty()) {
    size_t k = 0;
    walk<1>(shape, {broadcast_strides(visible[0].shape, shape)}, [&](auto at) {
      if (!visible[0].i[static_cast<size_t>(at[0])]) scores[k] = -infinity;
      ++k;
    });
  }
  for (size_t query = 0; query < queries; ++query) {
    Wide max = -infinity, sum = 0;
    Wide *row = scores.data() + query * keys;
    for (size_t j = 0; j < keys; ++j) {
      row[j] = s.masked(row[j], static_cast<int64_t>(query), static_cast<int64_t>(j));
      max = std::isnan(row[j]) ? row[j] : std::max(max, row[j]);  // a NaN stays
    }
    const Wide base = max == -infinity ? Wide(0) : max;
    for (size_t j = 0; j < keys; ++j) sum += row[j] = std::exp(row[j] - base);
    for (size_t e = 0; e < width; ++e) {
      Wide total = 0;
      for (size_t j = 0; j < keys; ++j)
        total +=
            row[j] *
            Wide(v.f[static_cast<size_t>(s.row(static_cast<int64_t>(query), static_cast<int64_t>(j))) * width + e]);
      c.results[0].f[query * width + e] = static_cast<double>(total / (sum == 0 ? 1 : sum));
    }
    if (c.results.size() > 1) c.results[1].f[query] = static_cast<double>(std::log(sum) + base);
  }
  return {};
}

}  // namespace kiln::ops
