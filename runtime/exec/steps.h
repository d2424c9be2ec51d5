// The steps of a plan, made ready to run: operands and sizes are looked up when shapes or arrays change, so that
// running walks flat arrays. Places run them: host_steps.h, device_steps.h.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/exec/executable.h"
#include "runtime/exec/place.h"
#include "runtime/exec/signature.h"

namespace kiln {

class ReadySteps {
 public:
  // `steps` are of `plan`, `numbers` their sizes among `sizes`; all outlive this.
  ReadySteps(const Plan &plan, const PlanSizes &sizes, std::span<const Plan::Step> steps,
             std::span<const PlanSizes::Step> numbers);

  struct Step {
    Plan::Step::Kind kind;
    uint32_t first_operand = 0, first_size = 0;
    int64_t tasks = 0;           // launch
    uint64_t scratch_bytes = 0;  // launch: of one running task
    uint64_t bytes = 0;          // copy
  };

  // Takes the sizes of a call over. Errors: a copy between slots of different sizes (a damaged plan).
  Status resolve(const ResolvedSizes &sizes);
  // Where the slot's bytes are from now on, as kernels take addresses.
  void set(uint32_t plan_slot, void *data) {
    for (uint32_t use : uses_[plan_slot]) operands_[use] = data;
  }
  // The same for all slots of a kind, by their index.
  void set(Plan::Slot::Kind kind, std::span<void *const> data);
  void set(const Prepared &prepared);

  std::span<const Step> steps() const { return steps_; }
  const Plan::Step &planned(size_t step) const { return plan_steps_[step]; }
  void *const *operands(const Step &step) const { return operands_.data() + step.first_operand; }
  std::span<void *const> operands_of(size_t step) const {
    return {operands(steps_[step]), plan_steps_[step].slots.size()};
  }
  const int64_t *kernel_sizes(const Step &step) const { return kernel_sizes_.data() + step.first_size; }
  // What the KILN_ERROR_* bits of kernels mean in this plan. `step`: whose kernel it was; null: one of them. `where`:
  // of the message, its end.
  Status error_of(uint32_t bits, const Plan::Step *step = nullptr, std::string_view where = "") const;

 private:
  const Plan &plan_;
  const PlanSizes &sizes_;
  std::span<const Plan::Step> plan_steps_;
  std::span<const PlanSizes::Step> numbers_;
  std::vector<Step> steps_;
  std::vector<void *> operands_;             // of all steps, in their order
  std::vector<int64_t> kernel_sizes_;        // likewise
  std::vector<std::vector<uint32_t>> uses_;  // plan slot -> places in operands_
};

}  // namespace kiln
