// The plan's steps as work for a device's queue.
#include "runtime/exec/device.h"
#include "runtime/exec/steps.h"

namespace kiln {

Status ReadySteps::give_to(DeviceQueue &queue, const DeviceProgram &program) const {
  std::vector<uint64_t> buffers;
  for (void *pointer : pointers_) buffers.push_back(reinterpret_cast<uintptr_t>(pointer));
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Ready &ready = steps_[i];
    const Plan::Step &step = plan_steps_[i];
    const uint64_t *operands = buffers.data() + ready.first_pointer;
    Status status;
    switch (ready.kind) {
      case Plan::Step::Kind::launch:
        status = queue.launch({.program = program.handle(),
                               .kernel = step.kernel,
                               .buffers = operands,
                               .buffer_count = step.slots.size(),
                               .sizes = kernel_sizes_.data() + ready.first_size,
                               .size_count = step.symbols.size(),
                               .points = ready.tasks,  // of a device, each point is a task
                               .scratch_bytes = ready.scratch_bytes});
        break;
      case Plan::Step::Kind::copy:
        status = queue.copy(operands[1], operands[0], ready.bytes);
        break;
      case Plan::Step::Kind::reference:
        status = error(Code::internal, "a reference step runs on no device");
        break;
    }
    if (!status.ok()) return std::move(status).with_prefix(str_cat("step ", i, ": "));
  }
  return {};
}

Status ReadySteps::finish(DeviceQueue &queue) {
  KILN_ASSIGN(error_word_, queue.finish());
  return error_word_ == 0 ? Status() : error(Code::out_of_range, error_text());
}

}  // namespace kiln
