// exp, tanh and erf. The method for exp is Cody and Waite's ("Software Manual for the Elementary Functions"):
// x = n ln 2 + r, exp(x) = 2^n exp(r). tanh and erf are odd polynomials near 0 and go
// through exp beyond. Polynomials are minimax (Remez), fitted by coefficients.py.
#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

struct ExpConstants {
  double ln2_high, ln2_low;          // ln2_high has few bits: n * ln2_high is exact
  double lowest, highest;            // beyond these exp is 0 and infinity
  double tanh_limit;                 // tanh is 1 above
  std::span<const double> quotient;  // (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2
};

constexpr double exp_quotient_f32[] = {0.49999994, 0.16666517, 0.041668102, 0.008369195, 0.0013838925};
// clang-format off
constexpr double exp_quotient_f64[] = {
    0.5, 0.16666666666666688, 0.041666666666666845, 0.00833333333331297, 0.0013888888888757165,
    0.00019841269906222426, 2.4801587629793734e-05, 2.7557225276822637e-06, 2.755697890680847e-07,
    2.5115289656536822e-08, 2.101425284664273e-09};
// clang-format on
constexpr ExpConstants exp_f32{0.693359375, -2.1219444005469058e-4, -104, 89, 10, exp_quotient_f32};
constexpr ExpConstants exp_f64{0x1.62e42feep-1, 1.9082149292705877e-10, -746, 710, 20, exp_quotient_f64};
const ExpConstants &exp_constants(const Num &x) { return x.is_double() ? exp_f64 : exp_f32; }

struct ExpReduced {
  Num n;            // integer
  Num r_minus_one;  // exp(r) - 1
};

ExpReduced reduce(const Num &x) {
  const ExpConstants &constants = exp_constants(x);
  const double magic = format_of(x).magic;
  Num shifted = multiply_add(x, 1.4426950408889634, magic);
  Num n = shifted - magic;
  Num r = multiply_add(n, -constants.ln2_high, x);
  r = multiply_add(n, -constants.ln2_low, r);
  return {integer_of(shifted), exp_minus_one(r)};
}

// (tanh(x) - x) / x^3 in x^2, for |x| < 0.5625.
constexpr double tanh_f32[] = {-0.33333313, 0.13332437, -0.053835757, 0.021000387, -0.0061696586};
// clang-format off
constexpr double tanh_f64[] = {
    -0.33333333333333276, 0.13333333333322822, -0.05396825396154737, 0.021869488322296876,
    -0.008863231557070018, 0.003592081455904033, -0.001455474627380903, 0.0005881634308347312,
    -0.00023266584374776839, 8.229027738962372e-05, -1.8861314601692727e-05};
// clang-format on

// erf(x) = x + x P(x^2) below `split`; above it 1 - exp(Q(x - centre)) with Q = log(erfc), up to `limit`, where it
// is 1.
struct ErfConstants {
  double split, centre, limit;
  std::span<const double> small, log_erfc;
};

// clang-format off
constexpr double erf_small_f32[] = {
    0.12837917, -0.3761263, 0.11283626, -0.02685574, 0.005192461, -0.0008050815, 8.002837e-05};
constexpr double log_erfc_f32[] = {
    0.00017468202, -1.1295149, -0.63334686, -0.10828022, 0.025119573, -0.004171148, 0.00043448774,
    -2.1098012e-05};
constexpr double erf_small_f64[] = {
    0.12837916709551256, -0.37612638903183676, 0.11283791670951067, -0.02686617064430023,
    0.005223977616627179, -0.0008548326470235415, 0.00012055310905897899, -1.49250683047763e-05,
    1.6451823759938217e-06, -1.6244672940237267e-07, 1.3888027984209879e-08, -8.132061135615377e-10};
constexpr double log_erfc_f64[] = {
    -7.806815272727264, -5.352680750986391, -0.9438937335241391, -0.010858072738538676, 0.0021654768989562735,
    -0.00042093256146888316, 7.703080560857907e-05, -1.2755838854987479e-05, 1.7689806996978426e-06,
    -1.5597059143932887e-07, -1.2606890126801894e-08, 1.0934574970091753e-08, -3.5132838192841097e-09,
    8.394781100513798e-10, -1.6256244140301238e-10, 2.4117051502536605e-11, -1.1409491110286109e-12,
    -5.528145423136413e-13, 1.1791843837733033e-13, -7.832190928573282e-14, 3.874100196502139e-14,
    -2.1044289837346915e-15, -1.0252185112455563e-15};
// clang-format on
constexpr ErfConstants erf_f32{0.93, 0, 4, erf_small_f32, log_erfc_f32};
constexpr ErfConstants erf_f64{0.93, 2.5, 6, erf_small_f64, log_erfc_f64};

}  // namespace

Num exp_minus_one(const Num &r) { return multiply_add(r * r, polynomial(r, exp_constants(r).quotient), r); }

// 2^n in two factors, so that a subnormal result is rounded once.
Num times_power_of_two(const Num &x, const Num &n) {
  Num half = n >> 1;
  return x * power_of_two(half, x) * power_of_two(n - half, x);
}

Num exp(const Num &x) {
  const ExpConstants &constants = exp_constants(x);
  ExpReduced reduced = reduce(at_least(at_most(x, constants.highest), constants.lowest));
  return times_power_of_two(reduced.r_minus_one + 1, reduced.n);
}

// tanh(x) = x + x^3 P(x^2) while that is below 1/2, then 1 - 2 / (exp(2x) + 1).
Num tanh(const Num &x) {
  Num magnitude = abs(x), square = x * x;
  Num small = x.is_double() ? polynomial(square, tanh_f64) : polynomial(square, tanh_f32);
  small = multiply_add(magnitude * square, small, magnitude);
  ExpReduced reduced = reduce(at_most(magnitude, exp_constants(x).tanh_limit) * 2);
  Num scale = power_of_two(reduced.n, x);
  Num large = 1.0 - 2.0 / (multiply_add(scale, reduced.r_minus_one, scale) + 1);
  return copysign(select(magnitude < 0.55, small, large), x);
}

Num erf(const Num &x) {
  const ErfConstants &constants = x.is_double() ? erf_f64 : erf_f32;
  Num magnitude = abs(x);
  Num small = multiply_add(polynomial(x * x, constants.small), x, x);
  Num log_erfc = polynomial(at_most(magnitude, constants.limit) - constants.centre, constants.log_erfc);
  ExpReduced reduced = reduce(log_erfc);
  Num large = 1.0 - (reduced.r_minus_one + 1) * power_of_two(reduced.n, x);
  return select(magnitude < constants.split, small, copysign(large, x));
}

}  // namespace kiln::codegen::math
