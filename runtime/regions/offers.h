// Nodes, as they are offered to the registered backends that a compile chose for them.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/backends/registered.h"
#include "runtime/graph/graph.h"

namespace kiln {

class Offers {
 public:
  // What a node that no backend takes whole is made of, as a graph of its own.
  using Flatten = std::function<Result<GraphPtr>(GraphPtr)>;
  Offers(const ChosenBackends &backends, const OpTable &ops, Flatten flatten)
      : backends_(backends), ops_(ops), flatten_(std::move(flatten)) {}
  // For graphs of which no node is offered.
  static const Offers &none();

  // Why the backend does not take the node, whole: "it ..."; nothing: it does. Errors are the backend's.
  Result<std::optional<std::string>> refusal(std::string_view backend, const GraphPtr &graph, const Node &node) const;
  // The graph, in which each node that the backend chosen for it (by `backend_of`; "": none) does not take whole, but
  // all that it is made of, has become that.
  Result<GraphPtr> decompose(GraphPtr graph, const std::function<std::string(const Node &)> &backend_of) const;

 private:
  struct Parts {
    GraphPtr graph;
    std::vector<ValueId> operands;  // of the node's graph, one for each input
  };
  // Nothing: not all of them are taken.
  Result<std::optional<Parts>> taken_parts(std::string_view backend, const GraphPtr &graph, const Node &node) const;

  const ChosenBackends &backends_;
  const OpTable &ops_;
  const Flatten flatten_;
};

// The region of a registered backend as the graph that a step runs: its parameters are inputs, behind the others.
Result<GraphPtr> without_parameters(const Graph &region);

}  // namespace kiln
