// The plan's steps on this processor: kernels are called on the executable's thread pool.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "jit/base/kernel_args.h"
#include "runtime/exec/body.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/steps.h"

namespace kiln {

// What may end a run inside of a kernel: once it is cancelled, no chunk of tasks is begun, and what a run's `ended`
// says is told. `asks`: parts of a chunk ask the host, too, whose error is told.
struct Watching {
  LoopWatch *watch = nullptr;
  bool asks = false;
};

class HostSteps {
 public:
  // `kernels`: the entries, by the artifact's numbers of kernels. `steps` and `numbers` are of `plan` and `sizes`,
  // which outlive this. Constants are set.
  HostSteps(const Executable &executable, std::span<const kiln_kernel_fn> kernels, const Plan &plan,
            const PlanSizes &sizes, std::span<const Plan::Step> steps, std::span<const PlanSizes::Step> numbers);

  ReadySteps &ready() { return ready_; }
  // Scratch for every worker, once the steps are resolved. code out_of_memory.
  Status place_scratch();
  // Runs all steps: launches and copies here, of the others it calls run_other with the step's number and where to note
  // what a kernel found. That (an index out of range) is told after the last step, what else fails at once. After each
  // step it calls ended with its number, whose error ends the run.
  template <class RunOther, class Ended>
  Status run(RunOther run_other, Ended ended, Watching watching = {});
  template <class RunOther>
  Status run(RunOther run_other) {
    return run(run_other, [](size_t) { return Status(); });
  }
  // Of bytes that do not overlap; of many on all threads.
  void copy(void *to, const void *from, uint64_t bytes);
  uint64_t scratch_bytes() const { return scratch_.size_bytes(); }

 private:
  Status launch(size_t step, Watching watching);
  Status error_of(size_t step) const;

  ReadySteps ready_;
  ThreadPool &pool_;
  std::vector<kiln_kernel_fn> entries_;  // by step
  Areas scratch_;                        // one for each worker, all of a size
  uint32_t error_word_ = 0;              // or-ed by kernels
};

template <class RunOther, class Ended>
Status HostSteps::run(RunOther run_other, Ended ended, Watching watching) {
  Status failed;
  const std::span<const ReadySteps::Step> steps = ready_.steps();
  error_word_ = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const ReadySteps::Step &step = steps[i];
    switch (step.kind) {
      case Plan::Step::Kind::launch:
        KILN_TRY(launch(i, watching));
        break;
      case Plan::Step::Kind::copy:
        copy(ready_.operands(step)[1], ready_.operands(step)[0], step.bytes);
        break;
      case Plan::Step::Kind::reference:
      case Plan::Step::Kind::call:
      case Plan::Step::Kind::branch:
      case Plan::Step::Kind::loop:
      case Plan::Step::Kind::scan:
      case Plan::Step::Kind::resolve:
        KILN_TRY(run_other(i, failed));
        break;
    }
    if (error_word_ && failed.ok()) failed = error_of(i);
    KILN_TRY(ended(i));
  }
  return failed;
}

}  // namespace kiln
