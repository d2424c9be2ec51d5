#include "runtime/graph/json_number.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "jit/base/json_writer.h"
#include "jit/base/small_float.h"
#include "jit/base/str.h"

namespace kiln::json {
namespace {

double double_of(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<double>(bits);
    case DType::f32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    default:
      return decode_float(static_cast<uint16_t>(bits), small_format(dtype));
  }
}

uint64_t bits_of(DType dtype, double number) {
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<uint64_t>(number);
    case DType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(number));
    default:
      return encode_float(number, small_format(dtype));
  }
}

// As convert has it: of 8-bit floats saturated.
uint64_t rounded(DType dtype, double number) {
  return bits_of(dtype, is_small_float(dtype) ? saturated(number, small_format(dtype)) : number);
}

int64_t sign_extend(DType dtype, uint64_t bits) {
  const int shift = 64 - 8 * static_cast<int>(size_of(dtype));
  return static_cast<int64_t>(bits << shift) >> shift;
}

// The integer's low bytes, where they are all of it.
std::optional<uint64_t> integer_element(DType dtype, int64_t integer) {
  const uint32_t size = size_of(dtype);
  const uint64_t mask = size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
  const uint64_t bits = static_cast<uint64_t>(integer) & mask;
  const bool fits = dtype_info(dtype).is_signed ? sign_extend(dtype, bits) == integer
                                                : integer >= 0 && bits == static_cast<uint64_t>(integer);
  return fits ? std::optional(bits) : std::nullopt;
}

template <class T>
std::optional<T> parse_all(std::string_view text, int base) {
  T number{};
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return failure == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(number)
                                                                                     : std::nullopt;
}

std::string hexadecimal(uint64_t bits, uint32_t size) {
  std::string out = "\"0x";
  for (int shift = 8 * static_cast<int>(size) - 4; shift >= 0; shift -= 4)
    out += "0123456789abcdef"[bits >> shift & 15];
  return out + '"';
}

}  // namespace

std::string text_of_element(DType dtype, uint64_t bits) {
  if (dtype == DType::boolean) return bits ? "true" : "false";
  if (dtype_info(dtype).is_integer) {
    constexpr int64_t exact = int64_t{1} << 53;
    if (!dtype_info(dtype).is_signed) return bits > exact ? str_cat('"', bits, '"') : str_cat(bits);
    int64_t integer = sign_extend(dtype, bits);
    return integer > exact || integer < -exact ? str_cat('"', integer, '"') : str_cat(integer);
  }
  double number = double_of(dtype, bits);
  if (std::isnan(number)) {
    bool plain = bits == bits_of(dtype, std::numeric_limits<double>::quiet_NaN());
    return plain ? "\"nan\"" : hexadecimal(bits, size_of(dtype));
  }
  if (std::isinf(number)) return number > 0 ? "\"inf\"" : "\"-inf\"";
  if (dtype == DType::f32) {  // fewer digits, where a reader that goes through double finds the same float
    std::string brief = json_number(static_cast<float>(number));
    double read = 0;
    std::from_chars(brief.data(), brief.data() + brief.size(), read);
    if (bits_of(dtype, read) == bits) return brief;
  }
  return json_number(number);
}

std::optional<uint64_t> element_of(DType dtype, double number) {
  if (dtype_info(dtype).is_float) return rounded(dtype, number);
  if (!dtype_info(dtype).is_integer || std::trunc(number) != number || std::abs(number) > 0x1p53) return std::nullopt;
  return integer_element(dtype, static_cast<int64_t>(number));
}

std::optional<uint64_t> element_of(DType dtype, std::string_view word) {
  if (dtype == DType::u64) return parse_all<uint64_t>(word, 10);
  if (dtype_info(dtype).is_integer) {
    std::optional<int64_t> integer = parse_all<int64_t>(word, 10);
    return integer ? integer_element(dtype, *integer) : std::nullopt;
  }
  if (!dtype_info(dtype).is_float) return std::nullopt;
  if (word == "nan") return bits_of(dtype, std::numeric_limits<double>::quiet_NaN());
  // The type's own, where it has one: so it is written.
  if (word == "inf") return bits_of(dtype, HUGE_VAL);
  if (word == "-inf") return bits_of(dtype, -HUGE_VAL);
  if (word.starts_with("0x") && word.size() == 2 + 2 * size_of(dtype)) return parse_all<uint64_t>(word.substr(2), 16);
  return std::nullopt;
}

}  // namespace kiln::json
