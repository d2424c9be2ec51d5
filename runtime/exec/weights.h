// Parameters in an artifact's file: whether a program may use those that are there, and which a call puts there.
#pragma once
#include "runtime/cache/weights.h"
#include "runtime/exec/executable.h"

namespace kiln {

// Whether the table speaks of this executable's parameters, each in memory that is there, and has the values of those
// that a call reads. code corrupt.
Status check_weights(const Weights &weights, const Executable &executable);

}  // namespace kiln
