// The float formats of 16 bits and fewer: their bits, from double and to double.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "jit/base/dtype.h"

namespace kiln {

struct FloatFormat {
  int exponent_bits, mantissa_bits;
  bool is_finite = false;  // no infinities: the largest exponent holds numbers, and NaN where all bits are set
  // Converting to it (storing is exact) makes the largest number of what is larger, infinities too.
  bool saturates = false;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t sign() const { return uint32_t{1} << (exponent_bits + mantissa_bits); }
  uint32_t infinity() const { return (sign() - 1) >> mantissa_bits << mantissa_bits; }
  uint32_t nan() const { return is_finite ? sign() - 1 : infinity() | uint32_t{1} << (mantissa_bits - 1); }
  uint32_t largest() const { return is_finite ? sign() - 2 : infinity() - 1; }
  uint32_t overflow() const { return is_finite ? largest() : infinity(); }  // stored
  uint32_t converted_overflow() const { return saturates ? largest() : overflow(); }
};
inline constexpr FloatFormat f16_format{5, 10}, bf16_format{8, 7};
// As the Open Compute Project's 8-bit floating point specification has them; ONNX' Cast saturates, too.
inline constexpr FloatFormat f8_e4m3fn_format{4, 3, true, true}, f8_e5m2_format{5, 2, false, true};

// Of a small float.
inline FloatFormat small_format(DType type) {
  switch (type) {
    case DType::f16:
      return f16_format;
    case DType::f8_e4m3fn:
      return f8_e4m3fn_format;
    case DType::f8_e5m2:
      return f8_e5m2_format;
    default:
      return bf16_format;
  }
}

// Exact.
inline double decode_float(uint16_t bits, FloatFormat format) {
  const int top = (1 << format.exponent_bits) - 1;
  const uint32_t mantissa = bits & ((uint32_t{1} << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & top;
  double value;
  if (format.is_finite ? (bits & (format.sign() - 1)) == format.nan() : exponent == top) {
    value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else {
    const uint32_t implicit = exponent ? uint32_t{1} << format.mantissa_bits : 0;
    value = std::ldexp(static_cast<double>(mantissa | implicit),
                       (exponent ? exponent : 1) - format.bias() - format.mantissa_bits);
  }
  return bits & format.sign() ? -value : value;
}

// Rounded once, halves to even; NaN becomes the quiet one.
inline uint16_t encode_float(double value, FloatFormat format) {
  const int bias = format.bias();
  const uint32_t sign = std::signbit(value) ? format.sign() : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(format.nan());
  if (value == 0) return static_cast<uint16_t>(sign);
  // In units of the last place at this exponent (that of the smallest normal below it), rounding makes an integer; a
  // carry into the exponent field, up to infinity, comes by itself.
  const int exponent = std::isinf(value) ? bias + 2 : std::max(std::ilogb(value), 1 - bias);
  if (exponent > bias + 1) return static_cast<uint16_t>(sign | format.overflow());
  const double units = std::nearbyint(std::ldexp(std::abs(value), format.mantissa_bits - exponent));
  const uint32_t bits =
      static_cast<uint32_t>(units) + (static_cast<uint32_t>(exponent + bias - 1) << format.mantissa_bits);
  return static_cast<uint16_t>(sign | std::min(bits, format.overflow()));
}

// As a value of the type holds it: floats rounded once, all else as it is.
inline double rounded_to(double value, DType type) {
  if (type == DType::f32) return static_cast<float>(value);
  return is_small_float(type) ? decode_float(encode_float(value, small_format(type)), small_format(type)) : value;
}

// A double that rounds to any smaller float as `exact` does: where it is not exact, the neighbour whose last bit is
// set.
inline double rounded_to_odd(long double exact) {
  const auto nearest = static_cast<double>(exact);
  if (nearest == exact || std::bit_cast<uint64_t>(nearest) & 1) return nearest;
  const double infinity = std::numeric_limits<double>::infinity();
  return std::nextafter(nearest, nearest < exact ? infinity : -infinity);
}

// As Core::convert makes it of `value`.
inline double saturated(double value, FloatFormat format) {
  if (!format.saturates || std::isnan(value)) return value;
  const double most = decode_float(static_cast<uint16_t>(format.largest()), format);
  return std::clamp(value, -most, most);
}

// Where a conversion that does not saturate begins to overflow: halfway between the largest number and what would be
// next. At that point itself the even one wins.
inline double overflow_bound(FloatFormat format) {
  const auto largest = static_cast<uint16_t>(format.largest());
  const double most = decode_float(largest, format);
  return most + (most - decode_float(static_cast<uint16_t>(largest - 1), format)) / 2;
}
inline bool overflows_at_bound(FloatFormat format) { return format.largest() & 1; }
// As such a conversion has `value`: infinite, or NaN in a format without infinities, where it overflows.
inline double unsaturated(double value, FloatFormat format) {
  const double bound = overflow_bound(format);
  const bool overflows = std::abs(value) > bound || (std::abs(value) == bound && overflows_at_bound(format));
  if (!overflows) return value;  // NaN, too
  return format.is_finite ? std::numeric_limits<double>::quiet_NaN()
                          : std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace kiln
