// The 16-bit float formats: their bits, from double and to double.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kiln {

struct FloatFormat {
  int exponent_bits, mantissa_bits;
};
inline constexpr FloatFormat f16_format{5, 10}, bf16_format{8, 7};

// Exact.
inline double decode_float(uint16_t bits, FloatFormat format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1, top = (1 << format.exponent_bits) - 1;
  const uint32_t mantissa = bits & ((uint32_t{1} << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & top;
  const bool negative = bits >> (format.mantissa_bits + format.exponent_bits) & 1;
  double value;
  if (exponent == top) {
    value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else {
    const uint32_t implicit = exponent ? uint32_t{1} << format.mantissa_bits : 0;
    value =
        std::ldexp(static_cast<double>(mantissa | implicit), (exponent ? exponent : 1) - bias - format.mantissa_bits);
  }
  return negative ? -value : value;
}

// Rounded once, halves to even; NaN becomes the quiet one.
inline uint16_t encode_float(double value, FloatFormat format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint32_t infinity = ((uint32_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  const uint32_t sign = uint32_t{std::signbit(value)} << (format.exponent_bits + format.mantissa_bits);
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | uint32_t{1} << (format.mantissa_bits - 1));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  if (value == 0) return static_cast<uint16_t>(sign);
  // In units of the last place at this exponent (that of the smallest normal below it), rounding makes an integer; a
  // carry into the exponent field, up to infinity, comes by itself.
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const double units = std::nearbyint(std::ldexp(std::abs(value), format.mantissa_bits - exponent));
  if (exponent > bias) return static_cast<uint16_t>(sign | infinity);
  const uint32_t bits =
      static_cast<uint32_t>(units) + (static_cast<uint32_t>(exponent + bias - 1) << format.mantissa_bits);
  return static_cast<uint16_t>(sign | std::min(bits, infinity));
}

}  // namespace kiln
