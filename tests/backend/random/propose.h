// What could come next in a graph that is being drawn.
#pragma once
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/ops/op.h"
#include "tests/backend/random/dice.h"
#include "tests/backend/random/random_case.h"

namespace kiln::testing {

// A value of the graph so far.
struct Drawn {
  ValueId id;
  TensorType type;
  std::vector<RefTensor> data;  // at each call
  bool exact = true;            // the same in whatever order and precision: a size that it tells, all runs agree on
  int uses = 0;
};

// An operand: a value of the graph, or a leaf that is made if the proposal is accepted.
struct Operand {
  enum class Kind : uint8_t { value, input, parameter, constant } kind = Kind::value;
  size_t value = 0;  // index, of kind value
  TensorType type;
  std::vector<RefTensor> data;  // of a leaf, at each call
};

struct Proposal {
  const Op *op = nullptr;
  std::vector<Operand> operands;
  AttrMap attrs;
};

// What all proposals for one graph draw from.
struct Palette {
  std::vector<DType> types;        // the first is that of most values; no type twice
  std::vector<Dim> dims;           // sizes that new shapes are made of
  std::vector<SymbolSizes> calls;  // the symbols, at each call; those that nodes resolve from when they are drawn
  std::vector<SymbolSizes> most;   // the same, where what is resolved is at its bound: memory is laid out for that
  std::set<std::string> resolved;  // symbols that nodes resolve: no leaf may have them
  std::vector<Dim> resolved_dims;  // sizes of them
  int64_t max_elements = 2048;     // of a tensor at any call
  bool nested = false;             // leaves are inputs and constants alone
  DType type(Dice &dice) const { return dice.chance(0.6) ? types[0] : dice.pick(types); }
  bool resolves(const TensorType &type) const;  // whether its dims have symbols that nodes resolve
};

std::vector<int64_t> shape_of(const Shape &dims, const SymbolSizes &sizes);

class Proposer {
 public:
  Proposer(Dice &dice, const Palette &palette, const std::vector<Drawn> &values)
      : dice_(dice), palette_(palette), values_(values) {}

  // May be nonsense: what becomes of it is for `infer` and the reference to say. None: nothing came to mind.
  std::optional<Proposal> propose(const Op &op);
  // A leaf with random elements, unless it is too large.
  std::optional<Operand> leaf(const TensorType &type, const Sample &ranges);
  Shape random_shape(int64_t max_rank);
  Operand existing(size_t value) const { return {Operand::Kind::value, value, values_[value].type, {}}; }

 private:
  Dim random_size();  // for an attribute, or what is no leaf
  Shape random_strides(const Shape &dims);
  std::vector<int64_t> random_order(size_t count);  // of 0 .. count - 1

  // ---- from the op's record: its samples are the patterns that operands and attributes follow
  std::optional<Proposal> from_record(const Op &op);
  // One of the op's samples, of f32 or in another type of the palette.
  Sample sample_of(const Op &op);
  std::optional<Proposal> from_values(const Op &op, const Sample &sample);
  std::optional<Proposal> from_pattern(const Op &op, const Sample &sample, bool adapt);
  bool shapes_fit(const Proposal &proposal, size_t last) const;  // with value `last` behind the proposal's operands
  void vary(const Op &op, size_t rank, AttrMap &attrs);
  AttrValue varied(const Op &op, const AttrDef &attr, const AttrValue &now, int64_t rank);

  // ---- views, whose attributes only make sense beside their operand (propose_views.cpp)
  std::optional<Proposal> for_view(const Op &op);
  AttrMap reshape(const TensorType &x);
  AttrMap expand(const TensorType &x);
  AttrMap slice(const TensorType &x);
  AttrMap permute(const TensorType &x);
  AttrMap squeeze(const TensorType &x);
  AttrMap pad(const TensorType &x);
  std::optional<Proposal> gather(const Op &op);
  std::optional<Proposal> concat(const Op &op);
  std::optional<Proposal> call(const Op &op);

  // ---- sizes that a run tells (propose_sizes.cpp)
  std::optional<Proposal> resolve(const Op &op);
  std::optional<Proposal> nonzero(const Op &op);
  Dim bound_of(std::span<const int64_t> counts);  // one that holds for what is counted at each call
  std::optional<Proposal> with_fresh_symbol(Proposal proposal) const;

  // A value that `accept` takes; unused ones first.
  template <class Accept>
  std::optional<size_t> find_value(Accept accept, bool exact = false);
  std::optional<size_t> value_of(DTypes dtypes, bool exact = false);
  // A value of the type, or a leaf.
  std::optional<Operand> operand_of(const TensorType &type, const Sample &ranges, bool exact = false);

  Dice &dice_;
  const Palette &palette_;
  const std::vector<Drawn> &values_;
};

template <class Accept>
std::optional<size_t> Proposer::find_value(Accept accept, bool exact) {
  std::vector<size_t> all, unused, resolved;
  for (size_t k = 0; k < values_.size(); ++k) {
    if ((exact && !values_[k].exact) || !accept(values_[k].type)) continue;
    all.push_back(k);
    if (values_[k].uses == 0) unused.push_back(k);
    if (palette_.resolves(values_[k].type)) resolved.push_back(k);
  }
  if (!resolved.empty() && dice_.chance(0.4)) return dice_.pick(resolved);
  if (!unused.empty() && dice_.chance(0.6)) return dice_.pick(unused);
  if (all.empty()) return std::nullopt;
  return dice_.pick(all);
}

const std::vector<Sample> &known_samples(const Op &op);

}  // namespace kiln::testing
