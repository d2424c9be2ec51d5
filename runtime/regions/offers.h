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
#include "runtime/regions/region_options.h"

namespace kiln {

class Offers {
 public:
  // What a node that no backend takes whole is made of, as a graph of its own.
  using Flatten = std::function<Result<GraphPtr>(GraphPtr)>;
  Offers(const ChosenBackends &backends, const OpTable &ops, Flatten flatten)
      : backends_(backends), ops_(ops), flatten_(std::move(flatten)) {}
  // For graphs of which no node is offered.
  static const Offers &none();

  // Why the backend of the region does not take the node, whole: "it ..."; nothing: it does. Errors are the backend's.
  Result<std::optional<std::string>> refusal(const RegionOptions &region, const GraphPtr &graph,
                                             const Node &node) const;
  // The graph, in which each node that the backend of its region (by `region_of`; null: it is of none) does not take
  // whole, but all that it is made of, has become that.
  Result<GraphPtr> decompose(GraphPtr graph, const std::function<const RegionOptions *(const Node &)> &region_of) const;

 private:
  struct Parts {
    GraphPtr graph;
    std::vector<ValueId> operands;  // of the node's graph, one for each input
  };
  // Nothing: not all of them are taken.
  Result<std::optional<Parts>> taken_parts(const RegionOptions &region, const GraphPtr &graph, const Node &node) const;

  const ChosenBackends &backends_;
  const OpTable &ops_;
  const Flatten flatten_;
};

// The region of a registered backend as the graph that a step runs: its parameters are inputs, behind the others.
Result<GraphPtr> without_parameters(const Graph &region);

}  // namespace kiln
