// log. x = 2^e m with m in [sqrt(1/2), sqrt(2)), log(x) = e ln 2 + log(1 + f), f = m - 1: the method of Cody and
// Waite, and of Moshier's Cephes. Polynomials are minimax (Remez), fitted by coefficients.py.
#include <cmath>

#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

// clang-format off
constexpr double log_f32[] = {
    0.33333313, -0.25000164, 0.2000222, -0.16659522, 0.14209767, -0.1254727, 0.121050395, -0.10928504,
    0.05361214};
constexpr double log_f64[] = {
    0.33333333333333337, -0.25000000000000805, 0.199999999999991, -0.16666666666427496, 0.1428571428561993,
    -0.12500000026471783, 0.11111111143299002, -0.09999998507550521, 0.09090906315369181,
    -0.08333381499774743, 0.07692426177074113, -0.0714193454352719, 0.06663781107069483, -0.06260125476242535,
    0.05923988968491435, -0.05503811819119741, 0.049171674748978926, -0.049571321628156084,
    0.062081571349736624, -0.06142562574422376, 0.02761095604169666};
// clang-format on

}  // namespace

Split split(const Num &x) {
  const Format &format = format_of(x);
  Num subnormal = x < format.smallest_normal;
  Num bits = bits_of(select(subnormal, x * std::ldexp(1, format.mantissa_bits), x));
  Num exponent = (bits - bits_of(x.literal(0.70710678118654752))) >> format.mantissa_bits;
  Num m = float_of(bits - (exponent << format.mantissa_bits), x);
  Num magic = x.literal(format.magic);  // converts: not every target has a vector conversion of i64 to f64
  Num e = float_of(exponent + bits_of(magic), x) - magic;
  return {select(subnormal, e - format.mantissa_bits, e), m - 1};
}

Num with_special_cases(const Num &x, const Num &logarithm) {
  Num others = select(x == 0.0, -infinity, select(x < 0.0, not_a_number, x));
  return select((x > 0.0) & (x < infinity), logarithm, others);
}

// log(1 + f) = f - f^2 / 2 + f^3 P(f), added from the small terms to the large ones.
Num log(const Num &x) {
  auto [e, f] = split(x);
  const double ln2_high = x.is_double() ? 0x1.62e42feep-1 : 0.693359375;
  const double ln2_low = x.is_double() ? 1.9082149292705877e-10 : -2.1219444005469058e-4;
  Num square = f * f;
  Num tail = f * square * (x.is_double() ? polynomial(f, log_f64) : polynomial(f, log_f32));
  tail = multiply_add(e, ln2_low, tail);
  tail = multiply_add(square, -0.5, tail);
  return with_special_cases(x, multiply_add(e, ln2_high, f + tail));
}

}  // namespace kiln::codegen::math
