// lgamma and digamma: a polynomial from 1 to 8, Stirling's series above, the recurrence below 1, and the reflection for
// what is negative. f32 is computed in f64, with fewer coefficients. Polynomials are minimax (Remez), fitted by
// coefficients.py.
#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

// lgamma(x) / ((x - 1) (x - 2)) and digamma(x) in (x - centre) / (x + centre), for 1 <= x <= 8; what Stirling's series
// leave, in 1 / x^2.
// clang-format off
constexpr double lgamma_f32[] = {
    0.35702899779843988, -0.35805768395106297, 0.12315308757492527, -0.12592725330998253, 0.079357662377019605,
    -0.079973343176013179, 0.05967136803686466, -0.059266879617435826, 0.047787296762903358,
    -0.051098719295643483, 0.043048193935982693, -0.022337224480171315, 0.019441279970793247,
    -0.078452841294138723, 0.069401443771793955};
constexpr double stirling_f32[] = {
    0.083333333265372136, -0.0027776989197296894, 0.00078005856912673167};
constexpr double lgamma_f64[] = {
    0.35702899779477137, -0.35805768177619213, 0.12315308717464864, -0.12592760219995155, 0.0793578687455503,
    -0.079957232917437795, 0.059659647513634596, -0.05959214198513646, 0.048046097724887132,
    -0.047777553952550435, 0.040269484920267974, -0.039960449941915471, 0.034668900587414488,
    -0.034374037235357521, 0.030461194581753916, -0.030183184170113883, 0.026910459179082483,
    -0.026768928544653823, 0.026117822035313282, -0.025342282354832484, 0.01380993319960667,
    -0.015939531983917222, 0.049695076248825867, -0.043409802547335077, -0.043845662520620006,
    0.034464704066608585, 0.087405591104589342, -0.080604183973104038};
constexpr double stirling_f64[] = {
    0.083333333333333329, -0.0027777777777776786, 0.00079365079351568059, -0.00059523802494177347,
    0.00084173280271030695, -0.0019149917596075112, 0.006209337894287857, -0.020877754198416462};
constexpr double digamma_f32[] = {
    0.85252282721302286, 2.3943048124262063, -0.43323421336768592, 1.1355764854472963, -0.50040708007666612,
    0.92792393156518771, -0.55124686945912649, 0.84543570976325455, -0.56756067441236835, 0.91266000195381458,
    -0.74465218595458804, 0.30720749568126526, -0.023980146648479288, 1.9926816877823563, -1.8863756654145321};
constexpr double digamma_far_f32[] = {
    0.083333332863301982, -0.0083327868490284517, 0.0038737989839407079};
constexpr double digamma_f64[] = {
    0.85252282629471954, 2.3943047504122328, -0.43323376769729033, 1.135586407955383, -0.50044298780046015,
    0.92746712145171573, -0.55013800927977008, 0.85462363122758889, -0.58436966429709314, 0.81933737514461757,
    -0.60767885769619678, 0.79833755736003953, -0.62401186341466341, 0.78400150342478203, -0.63498522311467986,
    0.7760059881545901, -0.65367905438052609, 0.74559004758300851, -0.57943220148490926, 0.89686614348328964,
    -1.0682491441657176, 0.11412153659786939, 0.97098719608176987, 2.7654370592210462, -5.0145225480222111,
    -3.1989868767424383, 6.4719696909597983, 4.7123220055339976, -6.5195117962647933};
constexpr double digamma_far_f64[] = {
    0.083333333333333329, -0.008333333333333276, 0.0039682539681548416, -0.004166666600336961,
    0.007575735255752343, -0.021088547318739957, 0.082851966733602816, -0.41060193032558984, 1.7756988278276957};
// clang-format on
constexpr double centre = 2.828125, series = 8, pi = 3.1415926535897931, pi_low = 1.2246467991473532e-16;

// sin(pi y) and cos(pi y) but for the sign of their product, which is that of `turn`: y less the next integer.
struct Reflected {
  Double2 sine, cosine;
  Num turn;
};
Reflected reflected(const Num &y) {
  Num turn = y - round_even(y), size = abs(turn), swapped = size > 0.25;
  Num part = select(swapped, 0.5 - size, size);
  Double2 r = two_product(part, y.literal(pi));
  SineCosine of = sine_and_cosine(r.high, multiply_add(part, pi_low, r.low));
  return {select(swapped, of.cosine, of.sine), select(swapped, of.sine, of.cosine), turn};
}

// What both are at 1 + x below 1, and at x else.
Num lgamma_of(const Num &x, const Num &log_x, bool single) {
  Num small = x < 1, y = select(small, x + 1, x), t = (y - centre) / (y + centre);
  Num factors = select(small, x * (x - 1), (x - 1) * (x - 2));
  // + 0: the factors of 1 are 0 and -1, and its result is +0.
  Num near = multiply_add(factors, single ? polynomial(t, lgamma_f32) : polynomial(t, lgamma_f64), 0.0);
  Num inverse = 1.0 / at_least(x, series), square = inverse * inverse;
  Num tail = multiply_add(single ? polynomial(square, stirling_f32) : polynomial(square, stirling_f64), inverse,
                          0.41893853320467274);
  return select(x >= series, multiply_add(x - 0.5, log_x - 1, tail), near);
}

Num lgamma_wide(const Num &x, bool single) {
  Num y = abs(x), small = y < 1, log_y = log(y), of = lgamma_of(y, log_y, single);
  Reflected at = reflected(y);
  Num mirrored = log(select(small, 1, y) * ((at.sine.high + at.sine.low) * (1 / pi)));
  Num result = select(x < 0.0, (0.0 - mirrored) - of, select(small, of - log_y, of));
  return select((y == infinity) | ((x < 0.0) & (at.turn == 0.0)), infinity, result);
}

Num digamma_wide(const Num &x, bool single) {
  Num y = abs(x), small = y < 1, negative = x < 0.0, at = select(small, y + 1, y), t = (at - centre) / (at + centre);
  Num near = single ? polynomial(t, digamma_f32) : polynomial(t, digamma_f64);
  Num inverse = 1.0 / at_least(y, series), square = inverse * inverse;
  Num tail = multiply_add(single ? polynomial(square, digamma_far_f32) : polynomial(square, digamma_far_f64), square,
                          inverse * 0.5);
  Num far = y >= series, of = select(far, log(y), near);
  Num rest = select(far, 0.0 - tail, 0.0) + select(small ^ negative, -1.0 / x, x.literal(0));
  Reflected mirror = reflected(y);
  Double2 of_turn = quotient(mirror.cosine, mirror.sine);
  Num low = select(of_turn.high < 0x1p900, of_turn.high * pi_low + of_turn.low * pi, 0.0);
  Num cotangent = copysign(multiply_add(of_turn.high, pi, low), mirror.turn);
  cotangent = select(mirror.turn == 0.0, not_a_number, cotangent);
  return (of + select(negative, cotangent, 0.0)) + rest;
}

}  // namespace

Num lgamma(const Num &x) { return in_f64(x, lgamma_wide); }
Num digamma(const Num &x) { return in_f64(x, digamma_wide); }

}  // namespace kiln::codegen::math
