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

void compute(Number &result, Core op, Number &x, Number &y) {
  switch (op) {
    case Core::exp:
      mpfr_exp(result, x, MPFR_RNDN);
      break;
    case Core::log:
      mpfr_log(result, x, MPFR_RNDN);
      break;
    case Core::tanh:
      mpfr_tanh(result, x, MPFR_RNDN);
      break;
    case Core::erf:
      mpfr_erf(result, x, MPFR_RNDN);
      break;
    case Core::sin:
      mpfr_sin(result, x, MPFR_RNDN);
      break;
    case Core::cos:
      mpfr_cos(result, x, MPFR_RNDN);
      break;
    case Core::rsqrt:
      mpfr_sqrt(result, x, MPFR_RNDN);
      mpfr_ui_div(result, 1, result, MPFR_RNDN);
      break;
    case Core::pow:
      mpfr_pow(result, x, y, MPFR_RNDN);
      break;
    default:
      mpfr_set_nan(result);
      break;
  }
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
