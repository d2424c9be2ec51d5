// Nodes that resolve a size: what they count is known at every call, and their bounds hold there, often exactly.
#include <algorithm>

#include "tests/backend/random/propose.h"

namespace kiln::testing {

// Counts an input that is a size of the palette at every call, or whatever there is.
std::optional<Proposal> Proposer::resolve(const Op &op) {
  const TensorType scalar = make_type(DType::i64, {});
  Sample ranges;
  ranges.int_low = 0;
  ranges.int_high = dice_.between(2, 12);
  std::optional<Operand> count;
  if (dice_.chance(0.5)) count = operand_of(scalar, ranges, /*exact=*/true);
  if (!count) count = leaf(scalar, ranges);
  if (!count) return std::nullopt;
  if (count->kind == Operand::Kind::input && dice_.chance(0.5)) {
    const Dim size = random_size();
    for (size_t call = 0; call < palette_.calls.size(); ++call)
      count->data[call].i = shape_of({size}, palette_.calls[call]);
    return Proposal{&op, {std::move(*count)}, {{"bound", size}}};
  }
  std::vector<int64_t> counts;
  for (const RefTensor &data : count->kind == Operand::Kind::value ? values_[count->value].data : count->data)
    counts.push_back(data.i[0]);
  return Proposal{&op, {std::move(*count)}, {{"bound", bound_of(counts)}}};
}

std::optional<Proposal> Proposer::nonzero(const Op &op) {
  const auto x = value_of(~DTypes{0}, /*exact=*/true);
  if (!x) return std::nullopt;
  Proposal made{&op, {existing(*x)}, {}};
  if (dice_.chance(0.5)) return made;
  std::vector<int64_t> counts;
  for (const RefTensor &data : values_[*x].data)
    counts.push_back(data.is_float() ? std::ranges::count_if(data.f, [](double element) { return element != 0; })
                                     : std::ranges::count_if(data.i, [](int64_t element) { return element != 0; }));
  made.attrs = {{"max", bound_of(counts)}};
  return made;
}

Dim Proposer::bound_of(std::span<const int64_t> counts) {
  const int64_t most = std::ranges::max(counts);
  std::vector<Dim> bounds = {most, most + dice_.below(4)};
  for (const Dim &dim : dice_.chance(0.3) && !palette_.resolved.empty() ? palette_.resolved_dims : palette_.dims) {
    bool holds = true;
    for (size_t call = 0; call < counts.size(); ++call)
      holds &= counts[call] <= shape_of({dim}, palette_.calls[call])[0];
    if (holds) bounds.push_back(dim);
  }
  return dice_.pick(bounds);
}

// What the node counts must be the same in all runs.
std::optional<Proposal> Proposer::with_fresh_symbol(Proposal proposal) const {
  const Operand &counted = proposal.operands[0];
  if (counted.kind == Operand::Kind::value && !values_[counted.value].exact) return std::nullopt;
  proposal.attrs.insert_or_assign("symbol", str_cat("k", palette_.resolved.size()));
  return proposal;
}

}  // namespace kiln::testing
