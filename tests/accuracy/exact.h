// Results of elementary functions to as many digits as their errors take to be known.
#pragma once
#include "jit/kernel/kernel.h"

namespace kiln::accuracy {

// The distance of `got` from op(x, y), in units of the last place of the exact result in f64 or, where `is_f32`, f32.
// x, y and `got` are numbers of that type; results beyond its range count as its first power of two outside, subnormal
// ones have the smallest number as unit, and where `scale` is larger than the result it has its last place. NaN for
// NaN, and a zero of the right sign, are no error.
double exact_error(kernel::Core op, double x, double y, double got, bool is_f32, double scale);

}  // namespace kiln::accuracy
