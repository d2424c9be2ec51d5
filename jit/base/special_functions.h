// Functions that the C++ library lacks, or has with a side effect, for reference kernels and tests: slow and simple, to
// nearly all digits of T (double or long double).
#pragma once
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>

namespace kiln {

// The y of which erf is x: Winitzki's approximation, then Halley's steps. Near 1 these are on erfc, which keeps all
// digits.
template <class T>
T inverse_erf(T x) {
  const T size = std::abs(x);
  if (!(size < 1)) return size == 1 ? x * std::numeric_limits<T>::infinity() : std::numeric_limits<T>::quiet_NaN();
  if (size < T(1e-30L)) return x * std::sqrt(std::numbers::pi_v<T>) / 2;
  const T logarithm = std::log1p(-size * size), a = T(0.147L), b = 2 / (std::numbers::pi_v<T> * a) + logarithm / 2;
  T y = std::sqrt(std::sqrt(b * b - logarithm / a) - b);
  if (y == 0) y = size;  // the difference of roots has lost all
  for (int step = 0; step < 6; ++step) {
    const T beyond = size < T(0.5L) ? std::erf(y) - size : (1 - size) - std::erfc(y);
    const T newton = beyond * std::sqrt(std::numbers::pi_v<T>) / 2 * std::exp(y * y);
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

// The derivative of log(|gamma(x)|): the recurrence up to 20, then the asymptotic series; below 0 the reflection.
template <class T>
T digamma(T x) {
  if (x < 0) {
    const T turn = x - std::nearbyint(x);
    if (turn == 0 || std::isinf(x)) return std::numeric_limits<T>::quiet_NaN();
    return digamma(-x) - 1 / x - std::numbers::pi_v<T> / std::tan(std::numbers::pi_v<T> * turn);
  }
  if (x == 0) return -1 / x;
  T sum = 0;
  for (; x < 20; ++x) sum += 1 / x;
  const T z = 1 / (x * x);
  T series = 0;
  for (const T term :
       {T(3617) / 8160, -T(1) / 12, T(691) / 32760, -T(1) / 132, T(1) / 240, -T(1) / 252, T(1) / 120, -T(1) / 12})
    series = (series + term) * z;
  return std::log(x) - 1 / (2 * x) + series - sum;
}

// std::lgamma without its global variable.
inline double log_of_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}
inline long double log_of_gamma(long double x) {
  int sign = 0;
  return ::lgammal_r(x, &sign);
}

}  // namespace kiln
