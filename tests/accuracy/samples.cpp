#include "tests/accuracy/samples.h"

#include <bit>
#include <cmath>

namespace kiln::accuracy {
namespace {

constexpr double half_pi = 1.5707963267948966, half_pi_rest = 6.123233995736766e-17;

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

double near_multiple_of_half_pi(uint64_t i) {
  constexpr uint64_t near = 5, multiples = 636'620;  // to a million
  const uint64_t k = i / (2 * near), step = i % near;
  // Beyond a million the multiples are drawn from all sizes that a double's whole numbers have.
  const double multiple = k < multiples ? static_cast<double>(k) : std::floor(std::exp2(19 + 33 * unit(mixed(k))));
  double x = std::fma(multiple, half_pi, multiple * half_pi_rest);
  for (uint64_t s = 0; s < step; ++s) x = std::nextafter(x, s % 2 ? 0 : 1e300);
  return i / near % 2 ? -x : x;
}

}  // namespace

double f64_sample(uint64_t i, uint64_t count) {
  const uint64_t at = i / 4, of = count / 4 + 1;
  const double part = static_cast<double>(at) / static_cast<double>(of);
  switch (i % 4) {
    case 0:
      return std::bit_cast<double>(at * (~uint64_t{0} / of));
    case 1:
      return (part - 0.5) * 4;
    case 2:
      return (part - 0.5) * 1600;
    default:
      return near_multiple_of_half_pi(at);
  }
}

Pair pow_pair(uint64_t i, bool is_f32) {
  const uint64_t a = mixed(2 * i), b = mixed(2 * i + 1);
  const double range = is_f32 ? 150 : 1075, sign = b & 1 ? -1 : 1;
  const double x = std::exp2((unit(a) - 0.5) * 2 * (is_f32 ? 149 : 1074)), log2 = std::log2(x);
  switch (i % 4) {
    case 0: {  // near 1
      const double near = 1 + sign * std::exp2(-52 * unit(a)) * (is_f32 ? 0x1p-1 : 1);
      return {near, (unit(b) - 0.5) * 2 * range / (std::log2(near) == 0 ? 1 : std::log2(near))};
    }
    case 1:  // any result
      return {x, (unit(b) - 0.5) * 2 * range / (log2 == 0 ? 1 : log2)};
    case 2:  // integral exponents
      return {sign * std::exp2((unit(a) - 0.5) * 20), std::floor((unit(b) - 0.5) * 400)};
    default:  // halves and small exponents
      return {x, std::floor((unit(b) - 0.5) * 16) / 2};
  }
}

}  // namespace kiln::accuracy
