// For json_*.cpp, and for other texts with such elements: an element of a tensor, or an f64, as JSON and back, bit by
// bit.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jit/base/dtype.h"

namespace kiln::json {

// The element's bits, in its low bytes, as JSON: a number that reads back the same bits; true or false; "nan" (the
// quiet, positive one), "inf", "-inf"; "0x7fc00001" for another NaN; a string for an integer beyond 2^53.
std::string text_of_element(DType dtype, uint64_t bits);

// A number's element: rounded for a float as `convert` has it, so 8-bit ones saturate (nullopt for none), exact for an
// integer (nullopt when it is out of range).
std::optional<uint64_t> element_of(DType dtype, double number);
// Of what stands in a string: one of the words above ("inf" is the infinity of f8_e5m2, and the largest number of
// f8_e4m3fn, which has none), hexadecimal bits of a float, or a decimal integer.
std::optional<uint64_t> element_of(DType dtype, std::string_view word);

}  // namespace kiln::json
