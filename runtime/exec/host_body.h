// A plan being run on this processor.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/exec/body.h"
#include "runtime/exec/host_steps.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/node_step.h"

namespace kiln {

class HostBody final : public Body {
 public:
  // `kernels`: the entries, by the artifact's numbers of kernels.
  HostBody(const Executable &executable, std::span<const kiln_kernel_fn> kernels, PlanPart part,
           const Signature &signature, ResolvedSizes &sizes, LoopWatch &watch);

  void set_prepared(const Prepared &prepared);
  Status run() override;
  Status run_on(std::span<void *const> operands) override;

 private:
  std::unique_ptr<Body> make_nested(PlanPart part, const Signature &signature, ResolvedSizes &sizes) override;
  ReadySteps &ready() override { return steps_.ready(); }
  Status place_memory() override;
  Status run_graph(size_t step);  // of kind reference
  // Null: reference kernels run the graph.
  std::unique_ptr<NodeStep> node_step_of(uint32_t graph) const;
  uint64_t own_bytes() const override { return arena_.size_bytes() + steps_.scratch_bytes(); }
  Status copy(void *to, const void *from, uint64_t bytes) override;
  Status read(void *to, const void *from, uint64_t bytes) override { return copy(to, from, bytes); }
  void *flag() override { return &flag_; }

  const Executable &executable_;
  const std::span<const kiln_kernel_fn> kernels_;
  HostSteps steps_;
  std::vector<std::unique_ptr<NodeStep>> node_steps_;  // by step; null: it is none
  Areas arena_;
  uint8_t flag_ = 0;
};

}  // namespace kiln
