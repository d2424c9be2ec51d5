// The module's device table (jit/base/device.h): the driver behind C.
#pragma once
#include "jit/base/device.h"

namespace kiln::cuda {

extern const kiln_device_table device_table;

}  // namespace kiln::cuda
