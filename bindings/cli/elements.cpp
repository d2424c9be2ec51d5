#include "elements.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace kiln::cli {
namespace {

// DLPack's codes of 8-bit floats, which came with its version 1.1.
constexpr uint8_t float8_e4m3fn = 10, float8_e5m2 = 12;

struct Format {
  int exponent_bits, mantissa_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
Format format_of(DLDataType type) {
  if (type.code == kDLBfloat) return {8, 7};
  if (type.code == float8_e4m3fn) return {4, 3};
  if (type.code == float8_e5m2) return {5, 2};
  return {5, 10};
}

// f8_e4m3fn has no infinities: its largest exponent holds numbers, but for the largest mantissa.
double decode(unsigned bits, DLDataType type) {
  const Format format = format_of(type);
  const unsigned most_mantissa = (1u << format.mantissa_bits) - 1, most_exponent = (1u << format.exponent_bits) - 1;
  const unsigned mantissa = bits & most_mantissa, exponent = bits >> format.mantissa_bits & most_exponent;
  const bool is_negative = bits >> (format.mantissa_bits + format.exponent_bits) & 1;
  double value;
  if (exponent == most_exponent && (type.code != float8_e4m3fn || mantissa == most_mantissa)) {
    value = mantissa ? NAN : HUGE_VAL;
  } else {
    const unsigned leading = exponent ? most_mantissa + 1 : 0;
    value =
        std::ldexp(mantissa + leading, std::max(static_cast<int>(exponent), 1) - format.bias() - format.mantissa_bits);
  }
  return is_negative ? -value : value;
}

unsigned encode(double value, DLDataType type) {
  const Format format = format_of(type);
  const unsigned sign = std::signbit(value) ? 1u << (format.mantissa_bits + format.exponent_bits) : 0;
  if (value == 0) return sign;
  const int exponent = std::max(std::ilogb(value), 1 - format.bias());
  const auto units = static_cast<unsigned>(std::ldexp(std::abs(value), format.mantissa_bits - exponent));
  return sign | (units + (static_cast<unsigned>(exponent + format.bias() - 1) << format.mantissa_bits));
}

template <class T>
double load_as(const std::byte *at) {
  T element;
  std::memcpy(&element, at, sizeof element);
  return static_cast<double>(element);
}
template <class T>
void store_as(std::byte *at, T element) {
  std::memcpy(at, &element, sizeof element);
}

template <class Wide, class Half, class Quarter, class Byte>
double load_integer(int bits, const std::byte *at) {
  return bits == 64   ? load_as<Wide>(at)
         : bits == 32 ? load_as<Half>(at)
         : bits == 16 ? load_as<Quarter>(at)
                      : load_as<Byte>(at);
}

}  // namespace

bool is_float(DLDataType type) {
  return type.code == kDLFloat || type.code == kDLBfloat || type.code == float8_e4m3fn || type.code == float8_e5m2;
}

double load_element(DLDataType type, const std::byte *at) {
  if (!is_float(type))
    return type.code == kDLInt ? load_integer<int64_t, int32_t, int16_t, int8_t>(type.bits, at)
                               : load_integer<uint64_t, uint32_t, uint16_t, uint8_t>(type.bits, at);
  if (type.bits == 64) return load_as<double>(at);
  if (type.bits == 32) return load_as<float>(at);
  return decode(static_cast<unsigned>(type.bits == 16 ? load_as<uint16_t>(at) : load_as<uint8_t>(at)), type);
}

void store_element(DLDataType type, std::byte *at, double value) {
  if (type.bits == 64) return store_as(at, value);
  if (type.bits == 32) return store_as(at, static_cast<float>(value));
  const unsigned bits = encode(value, type);
  return type.bits == 16 ? store_as(at, static_cast<uint16_t>(bits)) : store_as(at, static_cast<uint8_t>(bits));
}

}  // namespace kiln::cli
