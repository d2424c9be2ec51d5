// How far two runs of one graph are apart.
#pragma once
#include <kiln/dlpack.h>

#include <string>

namespace kiln::cli {

struct Difference {
  double absolute = 0;  // the largest; NaN beside a number is infinite, beside NaN none
  double relative = 0;  // the largest of |a - b| / max(|b|, 1)
  std::string where;    // of the latter: "[3, 0]"; "" when all are equal
  bool is_beyond = false;
};

// Beyond is what differs by more than 2^-40 (f64), 2^-12 (f32), 2^-5 (16 bits) or 2^-1 (8-bit floats) of max(|b|, 1),
// and integers and booleans that differ at all. Both have the dims and type of one output.
Difference difference_of(const DLTensor &a, const DLTensor &b);

}  // namespace kiln::cli
