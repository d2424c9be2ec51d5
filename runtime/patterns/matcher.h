// Finds a pattern at a place of a graph. Threads: one at a time.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/patterns/pattern.h"

namespace kiln::patterns {

// Where a pattern was found.
struct Place {
  std::vector<ValueId> values;           // by term: what a capture is, or a node's first result; none: it is not there
  std::vector<std::optional<Dim>> dims;  // by name of a size; none: of what is not there
};

// How far the best attempt came, and the first condition that failed there.
struct Miss {
  size_t met = 0;    // captures and nodes of the pattern
  std::string node;  // of the graph, where the attempt began
  std::string why;   // empty: there was none
};

// The number that a scalar (rank 0) of the graph's own has: a float constant, or `full`.
std::optional<double> number_of(const Graph &graph, ValueId value);
bool holds(const AttrCondition &condition, const Graph &graph, const Node &node);

class Matcher {
 public:
  // `gone`: nodes, by id, that nothing uses any more; may grow. `miss` (null: nobody asks) hears of what fails.
  Matcher(const Graph &graph, const std::vector<bool> &gone, Miss *miss = nullptr)
      : graph_(graph), gone_(gone), miss_(miss) {}
  // The first way in which the pattern is found with its first output's node at `root`.
  std::optional<Place> match(const Pattern &pattern, const Node &root);

 private:
  enum class State : uint8_t { open, bound, absent };
  struct Goal {
    uint32_t term, output;
    ValueId value;  // none: there is no such operand
  };
  struct Mark {
    size_t goals, trail, dims;
  };
  // What an attempt may cost: operands in either order make ways that grow without bound.
  static constexpr uint32_t most_steps = 20000;

  bool solve(size_t at);
  bool solve_capture(const Goal &goal, size_t at);
  bool solve_node(const Goal &goal, size_t at);
  bool at_node(uint32_t term, const Node &node, size_t at);
  bool with_operands(const Term &term, const Node &node, bool turned, size_t at);
  bool solve_join(size_t at);
  bool finish();

  bool fits_capture(const Term &term, ValueId value);
  bool fits_node(const Term &term, const Node &node);
  bool fits_type(const Term &term, const TensorType &type);
  bool fits_shape(const Term &term, const ShapeCondition &shape, const TensorType &type);
  bool plausible(const Operand &operand, ValueId value) const;
  bool plausible(const Term &term, const Node &node, bool turned) const;  // its operands, as given or turned round
  static ValueId given(const Node &node, size_t operand, bool turned);
  bool used_inside();
  bool same_annotations_everywhere();
  bool is_convex();

  const Node *node_at(ValueId value) const { return graph_.find(value.node); }
  bool is_gone(uint32_t id) const { return id < gone_.size() && gone_[id]; }
  bool is_matched(uint32_t node) const;
  void bind(uint32_t term, State state, ValueId value);
  Mark mark() const { return {goals_.size(), trail_.size(), bound_dims_.size()}; }
  void undo(const Mark &to);
  // Says why not, if this attempt came furthest, and returns false. Written `miss_ && fail(…)`: the words are made only
  // where somebody asks.
  template <class... Parts>
  bool fail(const Parts &...parts) {
    if (miss_->why.empty() || trail_.size() > miss_->met) note(str_cat(parts...));
    return false;
  }
  void note(std::string why);
  static std::string called(const Term &term);
  static std::string names_of_ops(const Term &term);

  const Graph &graph_;
  const std::vector<bool> &gone_;
  Miss *miss_;

  const Pattern *pattern_ = nullptr;
  const Node *root_ = nullptr;
  uint32_t steps_ = 0;
  std::vector<State> states_;
  std::vector<ValueId> values_;
  std::vector<std::optional<Dim>> dims_;
  std::vector<Goal> goals_;
  std::vector<uint32_t> trail_, bound_dims_;
};

}  // namespace kiln::patterns
