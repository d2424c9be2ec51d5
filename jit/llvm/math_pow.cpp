// pow: |x|^y = 2^(y log2|x|). For f32 all of it is in f64; for f64 the logarithm and its product with y are
// double-double. Polynomials are minimax (Remez), fitted by coefficients.py.
#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

// |x|^y = 2^(y log2|x|); the sign is that of x for odd y. `power` has f64's range, or f32's for operands that were f32.
Num signed_power(const Num &x, const Num &y, const Num &power) {
  Num half = y * 0.5;
  Num y_is_integer = round_even(y) == y;
  Num odd = y_is_integer & (round_even(half) != half);
  Num result = select(odd, copysign(power, x), power);
  Num undefined = (x < 0.0) & (x > -infinity) & (round_even(y) != y);
  result = select(undefined, not_a_number, result);
  return select((x == 1.0) | (y == 0.0), 1.0, result);  // even of NaN
}

// ---- f32

// log2(1 + f) / f to 2^-41, and exp2 on [-1/2, 1/2] to 2^-29.
// clang-format off
constexpr double log2_quotient[] = {
    1.4426950408893546, -0.7213475204249703, 0.4808983465854914, -0.3606737659000566, 0.2885390706794803,
    -0.24044872725551694, 0.20609526659936267, -0.18035040499183425, 0.1604252324327595, -0.14412615716846938,
    0.1291441061815618, -0.1196258371484718, 0.1261236944484679, -0.12351982003088803, 0.06318072081487984};
constexpr double exp2_coefficients[] = {
    1.0000000005548684, 0.6931472057402119, 0.24022646889073312, 0.055503287737718426, 0.009618489068543325,
    0.001339993210146075, 0.00015345788418019075};
// clang-format on

// In f64 throughout: its range needs no care, its precision makes the conversion back the one rounding that counts.
Num pow_f32(const Num &x32, const Num &y32) {
  llvm::Type *wide = x32.type_of(x32.ir().getDoubleTy());
  Num x = x32.with(x32.ir().CreateFPExt(x32.value(), wide));
  Num y = x.with(x.ir().CreateFPExt(y32.value(), wide));
  Num magnitude = abs(x);
  auto [e, f] = split(magnitude);
  Num log2 = with_special_cases(magnitude, multiply_add(f, polynomial(f, log2_quotient), e));
  // The bound on y keeps 0 * infinity out where |x| is 1; beyond it no other result is finite and not 0 anyway.
  Num exponent = at_least(at_most(at_least(at_most(y, 1e30), -1e30) * log2, 200), -200);
  Num shifted = exponent + binary64.magic;
  Num fraction = exponent - (shifted - binary64.magic);
  Num power = polynomial(fraction, exp2_coefficients) * power_of_two(integer_of(shifted), x);
  Num result = signed_power(x, y, power);
  return x32.with(x.ir().CreateFPTrunc(result.value(), x32.type()));
}

// ---- f64

Double2 product(const Double2 &a, const Double2 &b) {
  Double2 result = two_product(a.high, b.high);
  return {result.high, result.low + (a.high * b.low + a.low * b.high)};
}
Double2 constant(const Num &like, double high, double low) { return {like.literal(high), like.literal(low)}; }

// (2 atanh(s) - 2 s - 2 s^3 / 3) / s^5 in s^2, for s^2 <= 0.0295.
// clang-format off
constexpr double atanh_tail[] = {
    0.3999999999999998, 0.2857142857144387, 0.2222222221777924, 0.1818181884563561, 0.1538455829863736,
    0.13336270024459357, 0.11675660033661243, 0.11982816309538563};
// clang-format on

// log(1 + f) = 2 atanh(s), s = f / (2 + f), to 2^-64: the terms of s and s^3 are double-double.
Double2 log2_double2(const Num &x) {
  auto [e, f] = split(x);
  Double2 divisor = quick_sum(f.literal(2), f);
  Num quotient = f / divisor.high;
  Double2 back = two_product(quotient, divisor.high);
  Double2 s{quotient, (((f - back.high) - back.low) - quotient * divisor.low) / divisor.high};
  Double2 square = product(s, s);
  Double2 cubic = quick_sum(f.literal(2.0 / 3), square.high * polynomial(square.high, atanh_tail));
  cubic.low = cubic.low + 3.700743415417188e-17;
  Double2 factor = product(square, cubic);
  Double2 sum = quick_sum(f.literal(2), factor.high);
  sum.low = sum.low + factor.low;
  Double2 log2 = product(product(s, sum), constant(f, 1.4426950408889634, 2.0355273740931033e-17));
  Double2 result = quick_sum(e, log2.high);
  return {with_special_cases(x, result.high), result.low + log2.low};
}

Num pow_f64(const Num &x, const Num &y) {
  Double2 log2 = log2_double2(abs(x));
  Num bounded = at_least(at_most(y, 0x1p70), -0x1p70);
  Double2 exponent = two_product(bounded, log2.high);
  Num low = exponent.low + bounded * log2.low;
  low = select(abs(exponent.high) < 1100, low, 0.0);  // and where it is NaN
  Num high = at_least(at_most(exponent.high, 1100), -1100);
  Num shifted = high + binary64.magic;
  Num fraction = (high - (shifted - binary64.magic)) + low;
  Num power = times_power_of_two(exp_minus_one(fraction * 0.69314718055994531) + 1, integer_of(shifted));
  return signed_power(x, y, power);
}

}  // namespace

Num pow(const Num &x, const Num &y) { return x.is_double() ? pow_f64(x, y) : pow_f32(x, y); }

}  // namespace kiln::codegen::math
