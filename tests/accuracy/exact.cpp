#include "tests/accuracy/exact.h"

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "jit/base/special_functions.h"

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

int log_of_gamma(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding) {
  int sign = 0;
  return mpfr_lgamma(result, &sign, x, rounding);
}

// Newton's steps from what the other reference gives, each of which doubles the digits.
int inverse_erf(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding) {
  mpfr_set_d(result, kiln::inverse_erf(mpfr_get_d(x, rounding)), rounding);
  if (!mpfr_number_p(result) || mpfr_zero_p(result)) return 0;
  Number error, slope, root;
  mpfr_const_pi(root, rounding);
  mpfr_sqrt(root, root, rounding);
  for (int step = 0; step < 4; ++step) {
    mpfr_erf(error, result, rounding);
    mpfr_sub(error, error, x, rounding);
    mpfr_sqr(slope, result, rounding);
    mpfr_exp(slope, slope, rounding);
    mpfr_mul(error, error, slope, rounding);
    mpfr_mul(error, error, root, rounding);
    mpfr_div_2ui(error, error, 1, rounding);
    mpfr_sub(result, result, error, rounding);
  }
  return 0;
}

// The functions of one argument.
struct Function {
  Core op;
  int (*compute)(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding);
};
constexpr Function functions[] = {
    {Core::exp, mpfr_exp},        {Core::log, mpfr_log},         {Core::tanh, mpfr_tanh},   {Core::erf, mpfr_erf},
    {Core::sin, mpfr_sin},        {Core::cos, mpfr_cos},         {Core::rsqrt, rsqrt},      {Core::erfinv, inverse_erf},
    {Core::lgamma, log_of_gamma}, {Core::digamma, mpfr_digamma}, {Core::tan, mpfr_tan},     {Core::asin, mpfr_asin},
    {Core::acos, mpfr_acos},      {Core::atan, mpfr_atan},       {Core::sinh, mpfr_sinh},   {Core::cosh, mpfr_cosh},
    {Core::asinh, mpfr_asinh},    {Core::acosh, mpfr_acosh},     {Core::atanh, mpfr_atanh}, {Core::erfc, mpfr_erfc},
    {Core::exp2, mpfr_exp2},      {Core::expm1, mpfr_expm1},     {Core::log1p, mpfr_log1p}, {Core::log2, mpfr_log2},
    {Core::log10, mpfr_log10}};

void compute(Number &result, Core op, Number &x, Number &y) {
  mpfr_set_nan(result);
  if (op == Core::pow) mpfr_pow(result, x, y, MPFR_RNDN);
  if (op == Core::atan2) mpfr_atan2(result, x, y, MPFR_RNDN);
  for (const Function &function : functions)
    if (function.op == op) function.compute(result, x, MPFR_RNDN);
}

}  // namespace

double exact_error(Core op, double x, double y, double got, bool is_f32, double scale) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Number a(x), b(y), exact;
  compute(exact, op, a, b);
  if (mpfr_nan_p(exact) || std::isnan(got)) return mpfr_nan_p(exact) && std::isnan(got) ? 0 : infinity;
  if (mpfr_zero_p(exact) && got == 0) return (mpfr_signbit(exact) != 0) == std::signbit(got) ? 0 : infinity;
  const int digits = is_f32 ? 24 : 53, least = is_f32 ? -125 : -1021, most = is_f32 ? 128 : 1024;  // as mpfr_get_exp
  Number least_scale(scale), limit(1), value(got);
  mpfr_mul_2si(limit, limit, most, MPFR_RNDN);
  if (std::isinf(got)) mpfr_setsign(value, limit, std::signbit(got), MPFR_RNDN);
  if (mpfr_cmpabs(exact, limit) > 0) mpfr_setsign(exact, limit, mpfr_signbit(exact), MPFR_RNDN);
  const mpfr_exp_t exponent = mpfr_cmpabs(exact, least_scale) < 0 ? mpfr_get_exp(least_scale)
                              : mpfr_zero_p(exact)                ? least
                                                   : std::clamp<mpfr_exp_t>(mpfr_get_exp(exact), least, most);
  mpfr_sub(value, value, exact, MPFR_RNDN);
  mpfr_mul_2si(value, value, digits - exponent, MPFR_RNDN);
  return std::abs(mpfr_get_d(value, MPFR_RNDN));
}

}  // namespace kiln::accuracy
