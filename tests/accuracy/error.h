// Errors in bulk, against a result of the next wider type.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/unit/jit/llvm/math_functions.h"

namespace kiln::accuracy {

// As codegen::test::error_in_ulp, without its divisions where `exact` is in the range of F's normal numbers.
inline double error_of(float got, double exact) {
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(exact) >> 52 & 2047) - 1023;
  if (exponent < -126 || exponent > 126 || !std::isfinite(got)) return codegen::test::error_in_ulp(got, exact);
  return std::abs(got - exact) * std::bit_cast<double>(static_cast<uint64_t>(1023 + 23 - exponent) << 52);
}
inline double error_of(double got, long double exact) {
  uint16_t sign_and_exponent = 0;  // of the x87 unit's format
  std::memcpy(&sign_and_exponent, reinterpret_cast<const char *>(&exact) + 8, sizeof sign_and_exponent);
  const int exponent = (sign_and_exponent & 32767) - 16383;
  if (exponent < -1022 || exponent > 1022 || !std::isfinite(got)) return codegen::test::error_in_ulp(got, exact);
  const auto distance = static_cast<double>(std::abs(got - exact));
  if (exponent < -900 || exponent > 900) return std::ldexp(distance, 52 - exponent);
  return distance * std::bit_cast<double>(static_cast<uint64_t>(1023 + 52 - exponent) << 52);
}

}  // namespace kiln::accuracy
