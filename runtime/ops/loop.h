// Nested graphs that decompositions make, for loops. For the files of this folder.
#pragma once
#include "runtime/ops/composer.h"

namespace kiln::ops {

// A graph that is written as a decomposition is, of the loop's operands.
class LoopGraph {
 public:
  explicit LoopGraph(const DecomposeContext &outer)
      : context_{.op = outer.op, .edit = edit_, .ops = outer.ops, .node = outer.node, .results = {}}, g(context_) {}
  LoopGraph(const LoopGraph &) = delete;
  LoopGraph &operator=(const LoopGraph &) = delete;

  Result<std::vector<ValueId>> inputs(std::span<const TensorType> types) {
    std::vector<ValueId> values;
    for (size_t k = 0; k < types.size(); ++k) {
      KILN_ASSIGN(values.emplace_back(), edit_.input(str_cat("x", k), types[k]));
    }
    return values;
  }
  Result<GraphPtr> finish(const std::vector<ValueId> &values) {
    KILN_TRY(g.give({}));
    KILN_TRY(edit_.set_output_values(values));
    return edit_.finish();
  }

 private:
  Edit edit_;
  DecomposeContext context_;

 public:
  Composer g;
};

// A dim as a loop's graphs name it: what is not known is their own symbol.
inline Dim loop_dim(const Dim &outer, std::string_view name) { return outer.is_integer() ? outer : Expr::symbol(name); }

// While what `condition` makes of the operands is true, what `turn` makes of them takes the place of the first ones. Of
// operands of `types`, which name unknown dims by symbols of their own.
template <class Condition, class Turn>
Result<ValueId> loop(DecomposeContext &c, const std::vector<ValueId> &operands, std::span<const TensorType> types,
                     int64_t carried, Condition condition, Turn turn) {
  LoopGraph test(c), body(c);
  KILN_ASSIGN(const std::vector<ValueId> tested, test.inputs(types));
  KILN_ASSIGN(const std::vector<ValueId> given, body.inputs(types));
  KILN_ASSIGN(GraphPtr cond_graph, test.finish({condition(test.g, tested)}));
  KILN_ASSIGN(GraphPtr body_graph, body.finish(turn(body.g, given)));
  return c.add("while", operands,
               {{"cond_graph", std::move(cond_graph)}, {"body_graph", std::move(body_graph)}, {"carried", carried}});
}

}  // namespace kiln::ops
