#include "runtime/exec/device_steps.h"

#include "runtime/exec/device_body.h"

namespace kiln {

Status give(const ReadySteps &ready, DeviceQueue &queue, const DeviceProgram &program,
            const std::function<Status(size_t step)> &run_other, const std::function<Status(size_t step)> &given) {
  const std::span<const ReadySteps::Step> steps = ready.steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    const ReadySteps::Step &step = steps[i];
    const Plan::Step &planned = ready.planned(i);
    std::vector<uint64_t> operands;
    for (size_t k = 0; k < planned.slots.size(); ++k)
      operands.push_back(reinterpret_cast<uintptr_t>(ready.operands(step)[k]));
    Status status;
    switch (step.kind) {
      case Plan::Step::Kind::launch:
        status = queue.launch({.program = program.handle(),
                               .kernel = planned.kernel,
                               .buffers = operands.data(),
                               .buffer_count = operands.size(),
                               .sizes = ready.kernel_sizes(step),
                               .size_count = planned.symbols.size(),
                               .points = step.tasks,  // of a device, each point is a task
                               .scratch_bytes = step.scratch_bytes});
        break;
      case Plan::Step::Kind::copy:
        status = queue.copy(operands[1], operands[0], step.bytes);
        break;
      case Plan::Step::Kind::reference:
        status = error(Code::internal, "a reference step runs on no device");
        break;
      case Plan::Step::Kind::call:
      case Plan::Step::Kind::branch:
      case Plan::Step::Kind::loop:
      case Plan::Step::Kind::scan:
      case Plan::Step::Kind::resolve:
        status = run_other(i);
        break;
    }
    if (!status.ok()) return std::move(status).with_prefix(str_cat("step ", i, ": "));
    if (given) KILN_TRY(given(i));
  }
  return {};
}

void set_constants(const DeviceProgram &program, ReadySteps &steps) {
  steps.set(Plan::Slot::Kind::constant, addresses_at(0, program.constants()));
}

}  // namespace kiln
