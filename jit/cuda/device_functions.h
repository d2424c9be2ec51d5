// The module's device table (jit/base/device_table.h): the driver behind C.
#pragma once
#include "jit/base/device_table.h"

namespace kiln::cuda {

extern const kiln_device_table device_table;

}  // namespace kiln::cuda
