#include "tests/accuracy/exact.h"

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::accuracy {
namespace {

using kernel::Core;

// Enough for sin of f64's largest number, and to tell 1 from what is nearest to it.
constexpr mpfr_prec_t precision_bits = 1300;

class Number {
 public:
  explicit Number(double value = 0) {
    mpfr_init2(number_, precision_bits);
    mpfr_set_d(number_, value, MPFR_RNDN);
  }
  Number(const Number &) = delete;
  Number &operator=(const Number &) = delete;
  ~Number() { mpfr_clear(number_); }
  operator mpfr_ptr() { return number_; }

 private:
  mpfr_t number_;
};

int rsqrt(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding) {
  mpfr_sqrt(result, x, rounding);
  return mpfr_ui_div(result, 1, result, rounding);
}

// The functions of one argument.
struct Function {
  Core op;
  int (*compute)(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding);
};
constexpr Function functions[] = {{Core::exp, mpfr_exp}, {Core::log, mpfr_log}, {Core::tanh, mpfr_tanh},
                                  {Core::erf, mpfr_erf}, {Core::sin, mpfr_sin}, {Core::cos, mpfr_cos},
                                  {Core::rsqrt, rsqrt}};

void compute(Number &result, Core op, Number &x, Number &y) {
  mpfr_set_nan(result);
  if (op == Core::pow) mpfr_pow(result, x, y, MPFR_RNDN);
  for (const Function &function : functions)
    if (function.op == op) function.compute(result, x, MPFR_RNDN);
}

}  // namespace

double exact_error(Core op, double x, double y, double got, bool is_f32) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Number a(x), b(y), exact;
  compute(exact, op, a, b);
  if (mpfr_nan_p(exact) || std::isnan(got)) return mpfr_nan_p(exact) && std::isnan(got) ? 0 : infinity;
  if (mpfr_zero_p(exact) && got == 0) return (mpfr_signbit(exact) != 0) == std::signbit(got) ? 0 : infinity;
  const int digits = is_f32 ? 24 : 53, least = is_f32 ? -125 : -1021, most = is_f32 ? 128 : 1024;  // as mpfr_get_exp
  Number limit(1), value(got);
  mpfr_mul_2si(limit, limit, most, MPFR_RNDN);
  if (std::isinf(got)) mpfr_setsign(value, limit, std::signbit(got), MPFR_RNDN);
  if (mpfr_cmpabs(exact, limit) > 0) mpfr_setsign(exact, limit, mpfr_signbit(exact), MPFR_RNDN);
  const mpfr_exp_t exponent = mpfr_zero_p(exact) ? least : std::clamp<mpfr_exp_t>(mpfr_get_exp(exact), least, most);
  mpfr_sub(value, value, exact, MPFR_RNDN);
  mpfr_mul_2si(value, value, digits - exponent, MPFR_RNDN);
  return std::abs(mpfr_get_d(value, MPFR_RNDN));
}

}  // namespace kiln::accuracy
