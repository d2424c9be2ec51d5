// The plan's steps as work for a device's queue.
#pragma once
#include <functional>

#include "jit/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/exec/steps.h"

namespace kiln {

// Gives all launches and copies to the queue, whose addresses they have; of other steps it calls run_other with the
// step's number. `given` may be empty: called after each step, its error ends it.
Status give(const ReadySteps &ready, DeviceQueue &queue, const DeviceProgram &program,
            const std::function<Status(size_t step)> &run_other, const std::function<Status(size_t step)> &given = {});
// The program's constants as the steps' operands.
void set_constants(const DeviceProgram &program, ReadySteps &steps);

}  // namespace kiln
