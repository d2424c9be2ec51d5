// exp, exp2, expm1, tanh and erf. The method for exp is Cody and Waite's ("Software Manual for the Elementary
// Functions"): x = n ln 2 + r, exp(x) = 2^n exp(r). tanh and erf are odd polynomials near 0 and go through exp beyond.
// Polynomials are minimax (Remez), fitted by coefficients.py.
#include <cmath>

#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

struct ExpConstants {
  double ln2_high, ln2_low;            // ln2_high has few bits: n * ln2_high is exact
  double lowest, highest;              // beyond these exp is 0 and infinity
  double minus_one, highest_less_one;  // beyond these exp - 1 is -1 and, even by half, infinity
  double lowest2, highest2;            // beyond these exp2 is 0 and infinity
  double tanh_split, tanh_limit;       // where its formula changes; above the limit it is 1
  std::span<const double> quotient;    // (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2
  std::span<const double> exp2;        // (2^r - 1) / r for |r| <= 1 / 2
};

constexpr double exp_quotient_f32[] = {0.49999994, 0.16666517, 0.041668102, 0.008369195, 0.0013838925};
// clang-format off
constexpr double exp_quotient_f64[] = {
    0.5, 0.16666666666666688, 0.041666666666666845, 0.00833333333331297, 0.0013888888888757165,
    0.00019841269906222426, 2.4801587629793734e-05, 2.7557225276822637e-06, 2.755697890680847e-07,
    2.5115289656536822e-08, 2.101425284664273e-09};
constexpr double expm1_quotient_f32[] = {0.5, 0.166666478, 0.0416664816, 0.00833786745, 0.0013933453, 0.000173408465};
constexpr double exp2_quotient_f32[] = {
    0.693147182, 0.240226507, 0.0555040501, 0.00961808674, 0.0013337828, 0.000154520967, 1.43586085e-05};
constexpr double exp2_quotient_f64[] = {
    0.69314718055994529, 0.24022650695909997, 0.055504108664823776, 0.0096181291076702907, 0.0013333558145894411,
    0.00015403530315725775, 1.5252734326217853e-05, 1.3215549627694529e-06, 1.017785887856638e-07,
    7.0318560452609319e-09, 4.4850980443795269e-10, 5.7138168907920877e-11};
// clang-format on
constexpr ExpConstants exp_f32{0.693359375,      -2.1219444005469058e-4, -104, 89, -20, 89, -152, 129, 0.9, 10,
                               exp_quotient_f32, exp2_quotient_f32};
constexpr ExpConstants exp_f64{0x1.62e42feep-1,  1.9082149292705877e-10, -746, 710, -40, 710.6, -1077, 1025, 0.55, 20,
                               exp_quotient_f64, exp2_quotient_f64};
const ExpConstants &exp_constants(const Num &x) { return x.is_double() ? exp_f64 : exp_f32; }

struct ExpReduced {
  Num n;               // integer
  Num r, r_minus_one;  // r; exp(r) - 1
};

ExpReduced reduce(const Num &x) {
  const ExpConstants &constants = exp_constants(x);
  const double magic = format_of(x).magic;
  Num shifted = multiply_add(x, 1.4426950408889634, magic);
  Num n = shifted - magic;
  Num r = multiply_add(n, -constants.ln2_high, x);
  r = multiply_add(n, -constants.ln2_low, r);
  return {integer_of(shifted), r, exp_minus_one(r)};
}

// (tanh(x) - x) / x^3 in x^2, for |x| < 0.91 and |x| < 0.5625.
constexpr double tanh_f32[] = {-0.333333194,   0.133329034,   -0.0539228097,  0.0216379184,
                               -0.00821381342, 0.00253358041, -0.000436989445};
// clang-format off
constexpr double tanh_f64[] = {
    -0.33333333333333276, 0.13333333333322822, -0.05396825396154737, 0.021869488322296876,
    -0.008863231557070018, 0.003592081455904033, -0.001455474627380903, 0.0005881634308347312,
    -0.00023266584374776839, 8.229027738962372e-05, -1.8861314601692727e-05};
// clang-format on

// erf(x) = x + x P(x^2) below `split`; above it 1 - exp(Q(x - centre)) with Q = log(erfc), up to `limit`, where it
// is 1. The centre lies where erfc is largest, and Q's rounding errors count most.
struct ErfConstants {
  double split, centre, limit;
  std::span<const double> small, log_erfc;
};

// clang-format off
constexpr double erf_small_f32[] = {
    0.12837917, -0.3761263, 0.11283626, -0.02685574, 0.005192461, -0.0008050815, 8.002837e-05};
constexpr double log_erfc_f32[] = {
    -1.68795311, -2.53407621, -0.835074067, -0.0441525877, 0.0106869843, -0.00211656163, 0.000296025624,
    -2.10948838e-05};
constexpr double erf_small_f64[] = {
    0.12837916709551256, -0.37612638903183676, 0.11283791670951067, -0.02686617064430023,
    0.005223977616627179, -0.0008548326470235415, 0.00012055310905897899, -1.49250683047763e-05,
    1.6451823759938217e-06, -1.6244672940237267e-07, 1.3888027984209879e-08, -8.132061135615377e-10};
constexpr double log_erfc_f64[] = {
    -1.6879531262569289, -2.5340761022135818, -0.83507450007975659, -0.044147959525678328, 0.01066557122895345,
    -0.0020643548280922406, 0.000222659975039581, 4.1247142768793884e-05, -3.2885787718021814e-05,
    1.0852279035352745e-05, -2.0494543434802979e-06, -1.7741565855693599e-08, 1.9274243735329786e-07,
    -9.034962080547805e-08, 2.6772522219932119e-08, -5.5875595425763737e-09, 7.5155948970824455e-10,
    -2.8674914256784049e-11, -1.3609644994746892e-11, 3.6548742111929308e-12, -4.7039461951039175e-13,
    3.3137457340331307e-14, -1.0252185112455563e-15};
// clang-format on
constexpr ErfConstants erf_f32{0.93, 0.9375, 4, erf_small_f32, log_erfc_f32};
constexpr ErfConstants erf_f64{0.93, 0.9375, 6, erf_small_f64, log_erfc_f64};

}  // namespace

Num exp_minus_one(const Num &r) { return multiply_add(r * r, polynomial(r, exp_constants(r).quotient), r); }

// 2^n in two factors, so that a subnormal result is rounded once.
Num times_power_of_two(const Num &x, const Num &n) {
  Num half = n >> 1;
  return x * power_of_two(half, x) * power_of_two(n - half, x);
}

// Where x is below `lowest` the result is 0, but not by underflow: that takes processors a hundred times as long, and
// attention has -inf wherever a key is hidden.
template <class Fn>
Num zero_below(const Num &x, double lowest, Fn power_of) {
  Num is_below = x < lowest;
  return select(is_below, 0.0, power_of(select(is_below, 0.0, x)));
}

Num exp_above_lowest(const Num &x) {
  const ExpConstants &constants = exp_constants(x);
  ExpReduced reduced = reduce(at_most(x, constants.highest));
  const Num &r = reduced.r;
  // exp(r) by Horner's rule to its end, which rounds less than exp(r) - 1 and 1, where products are not rounded.
  Num power = x.builder().fma ? multiply_add(r, multiply_add(r, polynomial(r, constants.quotient), 1.0), 1.0)
                              : reduced.r_minus_one + 1;
  return times_power_of_two(power, reduced.n);
}
Num exp(const Num &x) { return zero_below(x, exp_constants(x).lowest, exp_above_lowest); }

Num exp_of_sum(const Double2 &exponent, const Num &divisor) {
  const ExpConstants &constants = exp_constants(divisor);
  const double magic = format_of(divisor).magic;
  Num shifted = multiply_add(exponent.high + exponent.low, 1.4426950408889634, magic), n = shifted - magic;
  Num r = multiply_add(n, -constants.ln2_high, exponent.high) + multiply_add(n, -constants.ln2_low, exponent.low);
  Num power = multiply_add(r, multiply_add(r, polynomial(r, constants.quotient), 1.0), 1.0);
  return times_power_of_two(power / divisor, integer_of(shifted));
}

// x = n + r: the difference is exact.
Num exp2_above_lowest(const Num &x) {
  const ExpConstants &constants = exp_constants(x);
  Num bounded = at_most(x, constants.highest2);
  Num shifted = bounded + format_of(x).magic;
  Num r = bounded - (shifted - format_of(x).magic);
  return times_power_of_two(multiply_add(r, polynomial(r, constants.exp2), 1.0), integer_of(shifted));
}
Num exp2(const Num &x) { return zero_below(x, exp_constants(x).lowest2, exp2_above_lowest); }

// 2^n (1 + r + tail) - 1. The large terms are added exactly, and tail has what r lost by rounding.
Num expm1_over(const Num &x, int bits) {
  const ExpConstants &constants = exp_constants(x);
  const double magic = format_of(x).magic;
  Num bounded = at_least(at_most(x, constants.highest_less_one), constants.minus_one);
  Num shifted = multiply_add(bounded, 1.4426950408889634, magic);
  Num n = shifted - magic;
  Num first = multiply_add(n, -constants.ln2_high, bounded), r = multiply_add(n, -constants.ln2_low, first);
  Num rest = multiply_add(n, -constants.ln2_low, first - r);
  Num scale = power_of_two(integer_of(shifted) - bits, x);
  Double2 ones = quick_sum(scale, scale.literal(-std::ldexp(1, -bits))), sum = quick_sum(ones.high, scale * r);
  Num tail = multiply_add(r * r, polynomial(r, x.is_double() ? constants.quotient : expm1_quotient_f32), rest);
  return sum.high + (sum.low + multiply_add(scale, tail, ones.low));
}

Num expm1(const Num &x) {
  return select(abs(x) < (x.is_double() ? 0x1p-54 : 0x1p-25), x,
                expm1_over(at_most(x, exp_constants(x).highest), 1) * 2);  // half of a subnormal is rounded
}

// tanh(x) = x + x^3 P(x^2), then 1 - 2 / (exp(2x) + 1), of which f32 keeps all but 1 ulp only where the quotient is
// small.
Num tanh(const Num &x) {
  Num magnitude = abs(x), square = x * x;
  Num small = x.is_double() ? polynomial(square, tanh_f64) : polynomial(square, tanh_f32);
  small = multiply_add(magnitude * square, small, magnitude);
  ExpReduced reduced = reduce(at_most(magnitude, exp_constants(x).tanh_limit) * 2);
  Num scale = power_of_two(reduced.n, x);
  Num large = 1.0 - 2.0 / multiply_add(scale, reduced.r_minus_one, scale + 1);  // exp(2x) + 1, rounded once
  return copysign(select(magnitude < exp_constants(x).tanh_split, small, large), x);
}

Num erf_near_zero(const Num &x) {
  return multiply_add(polynomial(x * x, (x.is_double() ? erf_f64 : erf_f32).small), x, x);
}

Num erf(const Num &x) {
  const ErfConstants &constants = x.is_double() ? erf_f64 : erf_f32;
  Num magnitude = abs(x);
  Num small = erf_near_zero(x);
  Num log_erfc = polynomial(at_most(magnitude, constants.limit) - constants.centre, constants.log_erfc);
  ExpReduced reduced = reduce(log_erfc);
  Num scale = power_of_two(reduced.n, x);
  Num large = (1.0 - scale) - scale * reduced.r_minus_one;  // the first difference is exact
  return select(magnitude < constants.split, small, copysign(large, x));
}

}  // namespace kiln::codegen::math
