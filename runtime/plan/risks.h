// Which launches of a region can fail, and in which of its nodes: what a run says when a kernel sets the error word.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "jit/kernel/fuse.h"
#include "runtime/regions/lower.h"

namespace kiln {

// By launch: numbers of `region`'s risks, ascending. A risk that fusion computes in several kernels is in each of those
// that are found by following what it makes to memory; a kernel that computes it anew beside that is not found.
std::vector<std::vector<uint32_t>> risks_of_launches(const Lowered &region, std::span<const kernel::Launch> launches);

}  // namespace kiln
