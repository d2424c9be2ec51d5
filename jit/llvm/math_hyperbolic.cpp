// sinh and cosh by exp(x) - 1, their inverses by log(1 + x). f32 is computed in f64.
#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

// With t = exp(x) - 1: t - t^2 / (2 (t + 1)) near 0, (t + t / (t + 1)) / 2 beyond; a quarter of t does not overflow.
Num sinh_wide(const Num &x, bool) {
  Num magnitude = abs(x), quarter = expm1_over(magnitude, 2), quotient = quarter / (quarter + 0.25);
  Num small = multiply_add(quarter * -2, quotient, quarter * 4), large = multiply_add(quotient, 0.5, quarter * 2);
  Num result = select(magnitude < 1, small, large);
  return select(magnitude < 0x1p-27, x, copysign(result, x));
}

Num cosh_wide(const Num &x, bool) {
  Num quarter = expm1_over(abs(x), 2) + 0.25;
  return multiply_add(quarter, 2, 0.125 / quarter);
}

// Above it sqrt(x^2 + 1) and sqrt(x^2 - 1) are x, and the inverses log(2 x).
constexpr double far = 0x1p28;

Num log_of_twice(const Num &x, const Num &is_far, const Double2 &otherwise) {
  return log_of_sum({select(is_far, x, otherwise.high), select(is_far, 0, otherwise.low)},
                    select(is_far, 1, x.literal(0)));
}

// log(1 + x + (sqrt(x^2 + 1) - 1)), the latter without cancellation.
Num asinh_wide(const Num &x, bool) {
  Num magnitude = abs(x), square = x * x;
  Double2 more = quick_sum(magnitude, square / (sqrt(square + 1) + 1)), sum = two_sum(x.literal(1), more.high);
  return copysign(log_of_twice(magnitude, magnitude > far, {sum.high, sum.low + more.low}), x);
}

// log(x + sqrt(x^2 - 1)): of the square, the difference and the root what rounding loses is kept.
Num acosh_wide(const Num &x, bool) {
  Double2 square = two_product(x, x), less = quick_sum(square.high, x.literal(-1));
  Num root = sqrt(less.high);
  Double2 back = two_product(root, root), sum = quick_sum(x, root);
  Num lost = (((less.high - back.high) - back.low) + (less.low + square.low)) / (root + root + 0x1p-1000);  // 0 of 0
  return select(x < 1, not_a_number, log_of_twice(x, x > far, {sum.high, sum.low + lost}));
}

// log((1 + x) / (1 - x)) / 2 = log(1 + q) / 2, q = 2 x / (1 - x).
Num atanh_wide(const Num &x, bool) {
  Num twice = abs(x) * 2;
  Double2 divisor = quick_sum(x.literal(1), 0.0 - abs(x));
  Double2 q = quotient({twice, x.literal(0)}, divisor), sum = two_sum(x.literal(1), q.high);
  return copysign(log_of_sum({sum.high, sum.low + q.low}, x.literal(0)) * 0.5, x);
}

}  // namespace

Num sinh(const Num &x) { return in_f64(x, sinh_wide); }
Num cosh(const Num &x) { return in_f64(x, cosh_wide); }
Num asinh(const Num &x) { return in_f64(x, asinh_wide); }
Num acosh(const Num &x) { return in_f64(x, acosh_wide); }
Num atanh(const Num &x) { return in_f64(x, atanh_wide); }

}  // namespace kiln::codegen::math
