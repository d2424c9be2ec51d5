// The plan's steps as work for a device's queue.
#pragma once
#include "jit/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/exec/steps.h"

namespace kiln {

// Gives all steps to the queue, whose addresses they have.
Status give(const ReadySteps &ready, DeviceQueue &queue, const DeviceProgram &program);
// Waits for them, and tells an error that a kernel found.
Status finish(const ReadySteps &ready, DeviceQueue &queue);

}  // namespace kiln
