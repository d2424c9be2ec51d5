// What ops whose attributes are graphs share: their graphs' symbols and types. For the files of this folder.
#pragma once
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/ops/op.h"

namespace kiln::ops {

// What a nested graph's symbols are, in terms of the caller's: the dims of what binds them.
class Bindings {
 public:
  // Binds by the bare dims of the inputs, which are given `operands`, then checks all dims, symbol properties and
  // equalities. `first` is the number of the first of them among the node's.
  Status bind(InferContext &c, const Graph &graph, std::span<const TensorType> operands, size_t first = 0);
  // The types of the graph's outputs, in the caller's terms.
  Result<std::vector<TensorType>> outputs(const InferContext &c, const Graph &graph) const;

 private:
  Dim outside(const Dim &inside) const;
  // Whether the operands tell what `inside` is.
  bool tells(const Dim &inside) const;
  Status bind_input(InferContext &c, const Node &input, const TensorType &operand);

  std::map<std::string, Dim> dims_;
};

// The types of a graph's outputs at operands of these types; what they must agree in is recorded.
Result<std::vector<TensorType>> infer_nested(InferContext &c, const Graph &graph, std::span<const TensorType> operands);
// The outputs of one of a node's graphs, `found`, must be of these types.
Status require_outputs(InferContext &c, std::string_view graph, std::span<const TensorType> found,
                       std::span<const TensorType> expected, std::string_view of_what);
// A plan gives such a graph its operands where they are, row-major.
Status require_row_major(InferContext &c, std::string_view attr);

// Whether each element of the graph's outputs is a function of the same element of its inputs: all ops are pointwise.
bool takes_elements_apart(const Graph &graph);
// Such a graph for operands with `dims` more dims in front, whose sizes are symbols.
Result<GraphPtr> side_by_side(const Graph &graph, size_t dims);

// The type of an element along dim 0.
TensorType element_of(const TensorType &sequence);
// Element `turn` along dim, without it; and the same written.
RefTensor element_at(const ReferenceContext &c, const RefTensor &sequence, size_t dim, size_t turn);
void set_element(const ReferenceContext &c, RefTensor &sequence, size_t dim, size_t turn, const RefTensor &element);

// For samples: an array of each element type.
std::vector<TensorType> one_of_each(const Shape &dims);
// A graph for samples: inputs, then ops of earlier values by their numbers; `outputs` are numbers, too. The attributes
// are the last op's.
using SmallNodes = std::initializer_list<std::pair<std::string_view, std::vector<size_t>>>;
GraphPtr small_graph(const std::vector<TensorType> &inputs, SmallNodes nodes, const std::vector<size_t> &outputs,
                     const AttrMap &last_attrs = {});

}  // namespace kiln::ops
