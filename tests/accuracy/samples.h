// Which numbers a function is measured at. Sample i of `count` is the same in each run.
#pragma once
#include <cstdint>

namespace kiln::accuracy {

// f64: a quarter each of all bit patterns, evenly spread; of an even grid on [-2, 2]; of one on [-800, 800], where exp,
// tanh and erf have their results; and of the numbers next to multiples of pi/2, of each up to a million (one, or
// `count` if that is less), then of larger ones.
double f64_sample(uint64_t i, uint64_t count);

struct Pair {
  double x, y;
};
// Bases and exponents of pow, also for f32: near 1 with large exponents, any base with exponents that keep the result
// in range or near its ends, integral and half exponents with bases of either sign.
Pair pow_pair(uint64_t i, bool is_f32);

}  // namespace kiln::accuracy
