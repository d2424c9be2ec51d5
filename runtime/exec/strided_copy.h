// From a row-major array to one of other strides.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/exec/thread_pool.h"

namespace kiln {

// All elements of `from` (row-major, each of `element_bytes`: 1, 2, 4 or 8) to `to`, which is where element 0, 0, ...
// of the other array is; its strides are in elements and may be below 0. No two of its elements are one, and it does
// not overlap `from`. What lies between its elements is not touched. Large ones on all threads; in blocks, so that
// neither side jumps where the strides turn dims round.
void copy_to_strides(ThreadPool &pool, uint32_t element_bytes, std::span<const int64_t> dims, const void *from,
                     std::span<const int64_t> strides, void *to);

}  // namespace kiln
