// The steps of a plan, made ready to run: pointer tables, sizes and entries are looked up when shapes or arrays change,
// so that running walks flat arrays.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "jit/base/kernel_args.h"
#include "runtime/exec/executable.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/signature.h"

namespace kiln {

class DeviceProgram;
class DeviceQueue;

class ReadySteps {
 public:
  // `steps` are of the executable's plan, `numbers` their sizes; both outlive this.
  ReadySteps(const Executable &executable, std::span<const Plan::Step> steps, std::span<const PlanSizes::Step> numbers);

  // Takes the sizes of a call over. Errors: a copy between slots of different sizes (a damaged plan).
  Status resolve(const ResolvedSizes &sizes);
  // Where the slot's bytes are from now on: of a device's executable, on the device. Constants are set already where
  // the executor runs the kernels.
  void set(uint32_t plan_slot, void *data) {
    for (uint32_t use : uses_[plan_slot]) pointers_[use] = data;
  }

  // Runs all steps but those of kind reference, for which it calls run_reference. Kernels get the executable's pool.
  // An error of a kernel (an index out of range) is told after the last step.
  template <class RunReference>
  Status run(RunReference run_reference);

  // On a device: gives all steps to the queue. finish() waits for them and tells an error of a kernel.
  Status give_to(DeviceQueue &queue, const DeviceProgram &program) const;
  Status finish(DeviceQueue &queue);

  uint64_t scratch_bytes() const { return scratch_.size_bytes(); }

 private:
  struct Ready {
    Plan::Step::Kind kind;
    kiln_kernel_fn entry = nullptr;
    uint32_t first_pointer = 0, first_size = 0;
    int64_t tasks = 0;           // launch
    uint64_t scratch_bytes = 0;  // launch: of one running task
    uint64_t bytes = 0;          // copy
  };
  void launch(const Ready &step);
  Status error_of(size_t step) const;
  std::string error_text() const;  // of error_word_

  const Executable &executable_;
  std::span<const Plan::Step> plan_steps_;
  std::span<const PlanSizes::Step> numbers_;
  std::vector<Ready> steps_;
  std::vector<void *> pointers_;             // of all steps, in their order
  std::vector<int64_t> kernel_sizes_;        // likewise
  std::vector<std::vector<uint32_t>> uses_;  // plan slot -> places in pointers_
  Areas scratch_;                            // one for each worker, all of a size
  uint32_t error_word_ = 0;                  // or-ed by kernels
};

template <class RunReference>
Status ReadySteps::run(RunReference run_reference) {
  constexpr size_t none = SIZE_MAX;
  size_t failed = none;
  error_word_ = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Ready &step = steps_[i];
    switch (step.kind) {
      case Plan::Step::Kind::launch:
        launch(step);
        break;
      case Plan::Step::Kind::copy:
        if (step.bytes) std::memcpy(pointers_[step.first_pointer + 1], pointers_[step.first_pointer], step.bytes);
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
