// The plan's steps on this processor: kernels are called on the executable's thread pool.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "jit/base/kernel_args.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/steps.h"

namespace kiln {

class HostSteps {
 public:
  // `kernels`: the entries, by the plan's numbers of kernels. Constants are set.
  HostSteps(const Executable &executable, std::span<const kiln_kernel_fn> kernels, std::span<const Plan::Step> steps,
            std::span<const PlanSizes::Step> numbers);

  ReadySteps &ready() { return ready_; }
  // ReadySteps::resolve, and scratch for every worker. Errors also: out_of_memory.
  Status resolve(const ResolvedSizes &sizes);
  // Runs all steps but those of kind reference, for which it calls run_reference. An error of a kernel (an index out of
  // range) is told after the last step.
  template <class RunReference>
  Status run(RunReference run_reference);
  uint64_t scratch_bytes() const { return scratch_.size_bytes(); }

 private:
  void launch(const ReadySteps::Step &step, kiln_kernel_fn entry);
  Status error_of(size_t step) const;

  ReadySteps ready_;
  ThreadPool &pool_;
  std::vector<kiln_kernel_fn> entries_;  // by step
  Areas scratch_;                        // one for each worker, all of a size
  uint32_t error_word_ = 0;              // or-ed by kernels
};

template <class RunReference>
Status HostSteps::run(RunReference run_reference) {
  constexpr size_t none = SIZE_MAX;
  size_t failed = none;
  error_word_ = 0;
  const std::span<const ReadySteps::Step> steps = ready_.steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    const ReadySteps::Step &step = steps[i];
    switch (step.kind) {
      case Plan::Step::Kind::launch:
        launch(step, entries_[i]);
        break;
      case Plan::Step::Kind::copy:
        if (step.bytes) std::memcpy(ready_.operands(step)[1], ready_.operands(step)[0], step.bytes);
        break;
      case Plan::Step::Kind::reference:
        KILN_TRY(run_reference());
        break;
    }
    if (error_word_ && failed == none) failed = i;
  }
  return failed == none ? Status() : error_of(failed);
}

}  // namespace kiln
