// The step that a registered op's own function runs.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/exec/node_step.h"
#include "runtime/ops/registered.h"

namespace kiln {

// Of op token, which has been waited for when its turn comes.
class TokenStep final : public NodeStep {
 public:
  Status resize(const Signature &, const ResolvedSizes &) override { return {}; }
  Status run(std::span<void *const>) override { return {}; }
};

// Of one call object. One thread at a time.
class OpStep final : public NodeStep {
 public:
  // For a reference step's graph: null, if it is more than one node that such a function runs.
  static std::unique_ptr<OpStep> of(const Graph &graph);
  OpStep(const Graph &graph, const Node &node) : graph_(graph), node_(node) {}

  Status resize(const Signature &signature, const ResolvedSizes &sizes) override;
  // Opens what runs the op when it is first run.
  Status run(std::span<void *const> data) override;

 private:
  const Graph &graph_;
  const Node &node_;
  std::unique_ptr<OpRun> run_;
  std::vector<RunArray> arrays_;
  bool told_ = false;  // `run_` knows the arrays
};

}  // namespace kiln
