// Runs a grid of an entry that was built under shim.h: blocks one after the other, the threads of a block as coroutines
// that take turns at each __syncthreads().
#pragma once
#include <cstdint>

namespace kiln::standin {

// The library's symbols: kiln_shim_address(), and call_NAME, which passes on the entry's parameter by its address.
using ShimEntry = void (*)(const void *parameter);

// `shim_address`: kiln_shim_address of the entry's library. False when threads of a block did not all come to a
// __syncthreads().
bool run_grid(void *shim_address, ShimEntry entry, const void *parameter, uint32_t blocks, uint32_t threads);

}  // namespace kiln::standin
