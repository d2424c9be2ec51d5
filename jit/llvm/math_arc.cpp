// asin, acos, atan and atan2: an angle that is known, and an odd polynomial. All in f64, for f32 with fewer
// coefficients. Polynomials are minimax (Remez), fitted by coefficients.py.
#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

// (atan(q) - q) / q^3 for q <= 1 and (asin(t) - t) / t^3 for t <= 1/2, in squares.
// clang-format off
constexpr double atan_f32[] = {
    -0.33333326900696775, 0.1999967116348973, -0.14279833519834784, 0.11058226316698617, -0.088110998593067036,
    0.067416139106175693, -0.044690149267039854, 0.022540024007507917, -0.0073180229484299522, 0.0011138008106038879};
constexpr double atan_f64[] = {
    -0.33333333333333154, 0.19999999999964407, -0.14285714283276718, 0.11111111026637262, -0.090909073353415318,
    0.076922835804275128, -0.06666433691663512, 0.058806995204894554, -0.052542659636431829, 0.047248111331755764,
    -0.042255941703494025, 0.036770691430282304, -0.030105403562295827, 0.02222967421579438, -0.014128860670752389,
    0.0073567230315443044, -0.0029667424455245713, 0.00086001108398918284, -0.00015833400876125127,
    1.3839492305049123e-05};
constexpr double asin_f32[] = {
    0.16666659955011412, 0.075005065517623787, 0.044516465219479703, 0.03181208216895192, 0.014421142622893157,
    0.037542234157326375};
constexpr double asin_f64[] = {
    0.16666666666666763, 0.074999999999700917, 0.044642857175324811, 0.030381942671907001, 0.022372216042420567,
    0.017351592325381034, 0.013981064974571401, 0.011396846734438417, 0.01079218282829892, 0.0036600570201266308,
    0.021823271135159226, -0.021167173064145443, 0.032736322970872318};
// clang-format on

constexpr double half_pi = 1.5707963267948966, half_pi_low = 6.123233995736766e-17;

// base + angle + rest, where base is 0, pi/2 or pi and larger than the angle, if it is not 0.
Num added(const Num &base, const Num &angle, const Num &rest) {
  Double2 sum = quick_sum(base, angle);
  return sum.high + (sum.low + multiply_add(base, half_pi_low / half_pi, rest));
}

// base - angle or base + angle, with the angle of the smaller to the larger: at most pi/4.
Num arc(const Num &y, const Num &x, bool single) {
  Num rise = abs(y), run = abs(x), steep = rise > run, backward = copysign(x.literal(1), x) < 0.0;
  Num quotient = select(steep, run, rise) / select(steep, rise, run);
  quotient = select(rise == run, select(rise == 0.0, 0.0, x.literal(1)), quotient);  // infinities, too
  Num base = select(steep, half_pi, select(backward, 2 * half_pi, x.literal(0)));
  Num angle = select(steep ^ backward, 0.0 - quotient, quotient), square = quotient * quotient;
  Num tail = angle * square * (single ? polynomial(square, atan_f32) : polynomial(square, atan_f64));
  return copysign(added(base, angle, tail), y);
}

// Beyond 1/2 by asin(x) = pi/2 - 2 asin(s), s = sqrt((1 - x) / 2), of which f64 keeps what the root loses.
struct ArcSine {
  Num far, angle, tail;  // whether |x| > 1/2; then of s, times two; else of |x|
};
ArcSine arc_sine(const Num &magnitude, bool single) {
  Num far = magnitude > 0.5, half = (1.0 - magnitude) * 0.5, s = sqrt(half);
  Num t = select(far, s, magnitude), square = select(far, half, magnitude * magnitude);
  Num tail = t * square * (single ? polynomial(square, asin_f32) : polynomial(square, asin_f64));
  if (!single) {
    Double2 back = two_product(s, s);
    Num lost = ((half - back.high) - back.low) / (s + s + 0x1p-1000);  // 0 of 0
    tail = tail + select(far, lost, 0.0);
  }
  Num scale = select(far, 2, t.literal(1));
  return {far, t * scale, tail * scale};
}

Num asin_wide(const Num &x, bool single) {
  ArcSine of = arc_sine(abs(x), single);
  Num sign = select(of.far, -1, x.literal(1));
  return copysign(added(select(of.far, half_pi, x.literal(0)), of.angle * sign, of.tail * sign), x);
}

// pi/2 - asin(x), but 2 asin(s) near 1, and pi less that near -1.
Num acos_wide(const Num &x, bool single) {
  ArcSine of = arc_sine(abs(x), single);
  Num negative = x < 0.0;
  Num base = select(of.far, select(negative, 2 * half_pi, x.literal(0)), half_pi);
  Num sign = select(of.far ^ negative, 1, x.literal(-1));
  return added(base, of.angle * sign, of.tail * sign);
}

}  // namespace

Num atan2(const Num &y, const Num &x) {
  return x.is_double() ? arc(y, x, false) : narrowed(arc(widened(y), widened(x), true));
}
Num atan(const Num &x) { return atan2(x, x.literal(1)); }
Num asin(const Num &x) { return in_f64(x, asin_wide); }
Num acos(const Num &x) { return in_f64(x, acos_wide); }

}  // namespace kiln::codegen::math
