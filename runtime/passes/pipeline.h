// The ordered list of passes, and running a stage of it: each plugin pass in a transaction that is verified.
//
// pre_grad early passes run before the key is made: what they made is what is keyed. All others run after a miss.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/passes/pass.h"

namespace kiln {

// One pass of a compile, as its report tells it.
struct PassRun {
  std::string name, stage;
  uint64_t rewrites = 0, runs = 0, nodes_before = 0, nodes_after = 0;
  double ms = 0;
};

// Built-ins and registered passes. A value: a compile takes a snapshot.
class PassList {
 public:
  static PassList built_in();  // pipeline.cpp lists them
  // Refuses: a second registration of one (UUID, name) or one name; an all-zero UUID; late without identity.
  Status add(std::shared_ptr<const Pass> pass);
  Status remove(uint64_t registration);
  // Ordered by stage, priority, registration. `only` (none: all) chooses among registered passes (built-ins stay),
  // `without` removes any; both are exact names, an unknown one is an error.
  Result<std::vector<std::shared_ptr<const Pass>>> select(const std::optional<std::vector<std::string>> &only,
                                                          std::span<const std::string> without) const;
  std::span<const std::shared_ptr<const Pass>> all() const { return passes_; }

 private:
  std::vector<std::shared_ptr<const Pass>> passes_;
};

// Runs one pass on each graph nested in `graph`, once and innermost first, then on `graph`: edit, done, verify, commit.
// On failure the error names plugin, pass, invariant and node, and the caller still has the graph it gave. The run's
// counts are sums over these graphs.
Result<GraphPtr> run_pass(const Pass &pass, const GraphPtr &graph, const OpTable &ops, PassRun &out_run);

}  // namespace kiln
