// log, log1p, log2 and log10. x = 2^e m with m in [sqrt(1/2), sqrt(2)), log(x) = e ln 2 + log(1 + f), f = m - 1: the
// method of Cody and Waite, and of Moshier's Cephes. Polynomials are minimax (Remez), fitted by coefficients.py.
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

// log(1 + f) - f.
Num log_tail(const Num &f) {
  Num square = f * f;
  return multiply_add(square, -0.5, f * square * (f.is_double() ? polynomial(f, log_f64) : polynomial(f, log_f32)));
}

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

Num log_of_sum(const Double2 &sum, const Num &powers) {
  const Num &u = sum.high;
  auto [exponent, f] = split(u);
  Num e = exponent + powers;
  const double ln2_high = u.is_double() ? 0x1.62e42feep-1 : 0.693359375;
  const double ln2_low = u.is_double() ? 1.9082149292705877e-10 : -2.1219444005469058e-4;
  Num tail = multiply_add(e, ln2_low, log_tail(f)) + sum.low / u;
  return with_special_cases(u, multiply_add(e, ln2_high, f + tail));
}

Num log1p(const Num &x) { return copysign(log_of_sum(two_sum(x.literal(1), x), x.literal(0)), x); }

// A logarithm to another base: what it makes of 2, and its product with natural logarithms, each in two parts. two_high
// has few bits, so that its product with an exponent is exact.
struct Base {
  double two_high, two_low, factor_high, factor_low;
};
constexpr Base base2_f32{1, 0, 0x1.715476p+0, 1.9259629911266175e-08};
constexpr Base base2_f64{1, 0, 1.4426950408889634, 2.0355273740931033e-17};
constexpr Base base10_f32{0x1.344p-2, 4.605038981195214e-06, 0x1.bcb7b2p-2, -1.0103050052231683e-08};
constexpr Base base10_f64{0x1.34413509f7p-2, 1.42050232272661e-13, 0.4342944819032518, 1.098319650216765e-17};

Num log_to(const Base &base, const Num &x) {
  auto [e, f] = split(x);
  if (!x.is_double() && !x.builder().fma) {  // as fast as sums and products in two parts, which are off by 1.2 ulp
    Num wide = widened(f), square = wide * wide;
    Num tail = multiply_add(square, -0.5, wide * square * polynomial(wide, log_f32));
    Num two = widened(e) * (base.two_high + base.two_low);
    return with_special_cases(x, narrowed(multiply_add(wide + tail, base.factor_high + base.factor_low, two)));
  }
  // f32 takes f - f^2 / 2 in two parts, or it would be off by more than 1 ulp.
  Num leading = f, tail = log_tail(f);
  if (!x.is_double()) {
    Double2 square = two_product(f, f), parts = quick_sum(f, square.high * -0.5);
    leading = parts.high;
    tail = multiply_add(f * square.high, polynomial(f, log_f32), multiply_add(square.low, -0.5, parts.low));
  }
  Double2 product = two_product(leading, f.literal(base.factor_high)), sum = quick_sum(e * base.two_high, product.high);
  Num rest = multiply_add(tail, base.factor_high, multiply_add(leading, base.factor_low, product.low));
  return with_special_cases(x, sum.high + (sum.low + multiply_add(e, base.two_low, rest)));
}

Num log2(const Num &x) { return log_to(x.is_double() ? base2_f64 : base2_f32, x); }
Num log10(const Num &x) { return log_to(x.is_double() ? base10_f64 : base10_f32, x); }

}  // namespace kiln::codegen::math
