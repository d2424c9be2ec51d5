// Single elements of arrays, as doubles.
#pragma once
#include <kiln/dlpack.h>

#include <cstddef>

namespace kiln::cli {

// Whether Kiln has floats of this type; all its other types are integers, or bytes of 0 and 1.
bool is_float(DLDataType type);
// Integers beyond 2^53 are rounded.
double load_element(DLDataType type, const std::byte *at);
// Of a float type. Those of 16 bits and fewer are rounded towards zero; `value` is not too large for them.
void store_element(DLDataType type, std::byte *at, double value);

}  // namespace kiln::cli
