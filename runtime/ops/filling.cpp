#include "runtime/ops/filling.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "jit/base/small_float.h"
#include "runtime/ops/family.h"

namespace kiln::ops {

AttrDef exact_attr() {
  return {.name = "exact",
          .doc = "the digits of an integer, in place of value: beyond 53 bits that is not exact",
          .kind = AttrKind::text,
          .fallback = ""};
}

std::string digits_of(int64_t element, DType dtype) {
  return dtype_info(dtype).is_signed ? str_cat(element) : str_cat(static_cast<uint64_t>(element));
}

std::optional<uint64_t> filling(const AttrMap &attrs, DType dtype) {
  const std::string &digits = attrs.find("exact")->second.text_value();
  const double value = attrs.find("value")->second.f64();
  if (digits.empty()) {
    const uint64_t immediate =
        kernel::immediate_of(dtype, is_small_float(dtype) ? saturated(value, small_format(dtype)) : value);
    if (!dtype_info(dtype).is_integer) return immediate;
    const bool is_exact = std::trunc(value) == value && std::abs(value) <= 0x1p53 &&
                          value >= static_cast<double>(least_of(dtype)) && to_integer(value, dtype) == value;
    return is_exact ? std::optional(immediate) : std::nullopt;
  }
  const bool is_signed = dtype_info(dtype).is_signed;
  int64_t number = 0;
  uint64_t bits = 0;
  const char *end = digits.data() + digits.size();
  const auto read = is_signed ? std::from_chars(digits.data(), end, number) : std::from_chars(digits.data(), end, bits);
  if (is_signed) bits = static_cast<uint64_t>(number);
  const bool fits = is_signed ? number >= least_of(dtype) && number <= largest_of(dtype)
                              : bits <= static_cast<uint64_t>(largest_of(dtype));
  return read.ec == std::errc() && read.ptr == end && fits ? std::optional(bits) : std::nullopt;
}

Status require_filling(const InferContext &c, DType dtype) {
  const std::string &digits = c.attr("exact").text_value();
  const double value = c.attr("value").f64();
  if (!digits.empty() && !dtype_info(dtype).is_integer)
    return c.fail("exact is '", digits, "', expected none for dtype ", name_of(dtype), ", which value tells exactly");
  if (!digits.empty() && value != 0)
    return c.fail("exact is '", digits, "' and value is ", value, ", expected one of them");
  if (filling(c.attrs, dtype)) return {};
  const std::string range =
      str_cat("from ", digits_of(least_of(dtype), dtype), " to ", digits_of(largest_of(dtype), dtype));
  return digits.empty() ? c.fail("value is ", value, ", expected an integer of at most 53 bits for dtype ",
                                 name_of(dtype), " (exact takes longer ones), ", range)
                        : c.fail("exact is '", digits, "', expected an integer ", range);
}

}  // namespace kiln::ops
