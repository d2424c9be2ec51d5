// The step that a registered backend runs a region by.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/exec/executable.h"
#include "runtime/exec/node_step.h"

namespace kiln {

class BackendStep final : public NodeStep {
 public:
  explicit BackendStep(const LoadedProgram &loaded) : loaded_(loaded) {}

  // Until there is any, for other steps make the parameters at each run, each run prepares them.
  void set_prepared(std::shared_ptr<void> prepared) override { prepared_ = std::move(prepared); }
  Status resize(const Signature &signature, const ResolvedSizes &sizes) override;
  // Opens what runs the region when it is first run.
  Status run(std::span<void *const> data) override;

 private:
  const LoadedProgram &loaded_;
  std::optional<std::shared_ptr<void>> prepared_;  // null: the backend made nothing of them
  std::unique_ptr<BackendRun> run_;
  std::vector<RunArray> arrays_;
  uint32_t inputs_ = 0;
  bool told_ = false;  // `run_` knows the arrays
};

}  // namespace kiln
