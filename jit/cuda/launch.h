// How a launch is laid out: grid and block from the number of points, and the bytes of the entry's parameter.
#pragma once
#include <cstdint>

#include "jit/base/bytes.h"
#include "jit/base/device_table.h"
#include "jit/cuda/driver.h"

namespace kiln::cuda {

struct Dimensions {
  uint32_t blocks, threads;
};
// `max_threads`: of a block of this function on this device. Blocks stride over the points, so that a few for each
// multiprocessor suffice; with them, scratch is bounded.
Dimensions dimensions_of(const kiln_kernel_use &use, int64_t points, uint32_t max_threads, uint32_t multiprocessors);

// The parameter as source.h lays it out.
Bytes parameter_of(const kiln_device_launch &launch, Address scratch, Address error_word);

}  // namespace kiln::cuda
