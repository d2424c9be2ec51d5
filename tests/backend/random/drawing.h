// A graph while it is drawn: nodes are added one by one, each with its values at every call.
#pragma once
#include <vector>

#include "tests/backend/random/propose.h"

namespace kiln::testing {

class Drawing {
 public:
  Drawing(Dice &dice, Palette palette)
      : dice_(dice), palette_(std::move(palette)), proposer_(dice_, palette_, values_) {
    palette_.most = palette_.calls;
  }

  // What binds the symbols, and something to begin with.
  Status start();
  // Adds one node of `op`, if one is found in a few tries.
  Result<bool> add_node(const Op &op, int most_tries = 6);
  // Outputs: what nothing reads, some of the other values, at times an input.
  Result<GraphPtr> finish();
  // Of a call: inputs, then parameters.
  std::vector<TensorData> arguments(size_t call) const;

 private:
  struct WriteBack {
    const Op *op;
    ValueId dest, source;
  };

  // `otherwise` is the shape of an input in place of one that is too large; an empty one is of any kind of leaf.
  Status add_leaf(DType dtype, const Shape &shape, const Shape &otherwise = {});
  Result<ValueId> add_leaf(const Operand &leaf);
  Status declare(const std::string &symbol);  // says of a symbol what is true of it in all calls
  bool evaluate(const Proposal &proposal, std::vector<std::vector<RefTensor>> &results);
  // At the sizes of a call, of which those in `most` have memory laid out for them.
  bool is_small(const TensorType &type, const SymbolSizes &sizes, const SymbolSizes &most) const;
  bool is_exact(const Proposal &proposal, const Node &node) const;
  Status commit(const Proposal &proposal, const std::vector<std::vector<RefTensor>> &results);
  // What is resolved stays in a nested graph: of values of such sizes their sums leave it.
  Status add_sums();
  Status note_resolved(const Node &node, const std::vector<std::vector<RefTensor>> &results);
  Result<bool> note_write_back(const Op &op);
  bool is_input(const Drawn &value) const { return edit_.view().find(value.id.node)->kind == Node::Kind::input; }
  Status add_write_backs(std::vector<GraphOutput> outputs);

  Dice &dice_;
  Palette palette_;  // whose sizes become more as nodes resolve some
  std::vector<Drawn> values_;
  Proposer proposer_;
  Edit edit_;
  std::vector<std::vector<RefTensor>> inputs_, parameters_;  // each at each call
  std::vector<WriteBack> write_backs_;
};

}  // namespace kiln::testing
