// A step that runs one node, or one region, by code that Kiln did not make.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/exec/signature.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/registered.h"

namespace kiln {

// Of one call object. One thread at a time.
class NodeStep {
 public:
  virtual ~NodeStep() = default;
  // Takes the sizes over of a plan whose signature is the node's: operands, then results.
  virtual Status resize(const Signature &signature, const ResolvedSizes &sizes) = 0;
  // What the place made, once a binding, of the node's parameters, for steps that it makes something for.
  virtual void set_prepared(std::shared_ptr<void>) {}
  // `data` as for the reference step.
  virtual Status run(std::span<void *const> data) = 0;
};

// The arrays of the signature at these sizes.
std::vector<RunArray> arrays_of(const Signature &signature, const ResolvedSizes &sizes);

// The only node of a reference step's graph, which takes its inputs and gives its outputs; null: it is more than that.
const Node *node_of(const Graph &graph);

}  // namespace kiln
