// Measures every function of math.h against the next wider type's libm, at each feature level that this machine has.
#include "jit/llvm/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/unit/jit/llvm/math_functions.h"

namespace kiln::codegen::test {
namespace {

template <class F>
std::vector<F> special_values() {
  using Limits = std::numeric_limits<F>;
  std::vector<F> values{0, Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity(), Limits::quiet_NaN()};
  for (double x :
       {0.25, 0.5,   1.0,   1.5,      2.0,     2.5,   3.0,   3.5,    4.0,   0.92,      0.93,      0.94,
        10.0, 100.0, 88.72, 88.73,    87.34,   103.9, 104.1, 709.78, 745.2, 8388607.5, 8388608.0, 4503599627370495.5,
        1e9,  1e15,  1e22,  262143.0, 262145.0})
    values.push_back(static_cast<F>(x));
  // Where exp2, expm1, tanh, erf and log2 in f32 are or were off by the most.
  for (double x : {0.5030336380004883, 0.3522498905658722, 0.877244770526886, 0.9230633974075317, 1.399076223373413,
                   1.3974132537841797})
    values.push_back(static_cast<F>(x));
  for (size_t i = 0, count = values.size(); i < count; i++) {
    values.push_back(std::nextafter(values[i], F(0)));
    values.push_back(std::nextafter(values[i], Limits::infinity()));
  }
  for (size_t i = 0, count = values.size(); i < count; i++) values.push_back(-values[i]);
  return values;
}

// Every 4,099th number (`./dev accuracy` takes them all), and near multiples of pi/2.
std::vector<float> samples(float) {
  std::vector<float> values = special_values<float>();
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (int i = -50000; i < 50000; i++) values.push_back(static_cast<float>(i * 1.5707963267948966));
  for (int i = -100000; i < 100000; i++) values.push_back(static_cast<float>(i) * 1e-4f);
  return values;
}
std::vector<double> samples(double) {
  std::vector<double> values = special_values<double>();
  for (uint64_t i = 0; i < 400000; i++) values.push_back(std::bit_cast<double>(i * 46116860184273u));  // 2^64 / 400000
  for (int i = -50000; i < 50000; i++) values.push_back(i * 1.5707963267948966);
  for (int i = -200000; i < 200000; i++) values.push_back(static_cast<double>(i) * 1e-4);
  return values;
}

// All pairs of special values, then numbers near multiples of others, then each sample with an exponent of moderate or
// of any size.
template <class F>
void pair_up(std::vector<F> &x, std::vector<F> &y) {
  std::vector<F> special = special_values<F>(), bases = x;
  x.clear();
  for (F a : special)
    for (F b : special) x.push_back(a), y.push_back(b);
  for (int multiple = -3000; multiple < 3000; multiple++)
    for (F b : {F(0.1), F(-0.1), F(1.7), F(3e-39), F(-7)})
      for (F near : {F(multiple * b), std::nextafter(F(multiple * b), F(0)), std::nextafter(F(multiple * b), F(1e30))})
        x.push_back(near), y.push_back(b);
  uint64_t state = 1;
  for (F base : bases) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double unit = static_cast<double>(state >> 11) * 0x1p-53;
    const double range = sizeof(F) == 4 ? 150 : 1075;
    const double scale = std::log2(std::abs(static_cast<double>(base)));
    x.push_back(state >> 63 ? base : std::abs(base));
    y.push_back(static_cast<F>(state >> 61 & 1 ? std::floor((unit - 0.5) * 40)
                                               : (unit - 0.5) * 2 * range / (scale == 0 ? 1 : scale)));
  }
}

// Of f32 without fma, which would take a quarter more time to be as near.
bool is_trigonometric(Core op) { return op == Core::sin || op == Core::cos; }

template <class F, class Wide>
void measure(std::string_view level, double bound) {
  const Target target = *Target::by_name(level);
  if (!target.runs_on_host()) GTEST_SKIP() << "this machine lacks the feature level";
  const Features features = features_of(target);
  for (const Function<Wide> &function : functions<Wide>) {
    std::vector<F> x = samples(F()), y;
    if (function.binary) pair_up(x, y);
    while (x.size() % 32) x.push_back(1);
    y.resize(x.size(), 1);
    std::vector<Wide> exact(x.size());
    for (size_t i = 0; i < x.size(); i++) exact[i] = function.reference(x[i], y[i]);
    std::vector<F> out(x.size());
    for (unsigned lanes : {1u, static_cast<unsigned>(features.vector_bits / 8 / sizeof(F)), 32u}) {
      JitFunction code(features,
                       [&](llvm::Module &module) { emit_map(module, features, function.op, sizeof(F) == 8, lanes); });
      code.as<void(const F *, const F *, F *, int64_t)>()(x.data(), y.data(), out.data(),
                                                          static_cast<int64_t>(x.size()));
      size_t worst = 0;
      double largest = -1;
      for (size_t i = 0; i < x.size(); i++)
        if (double error = error_in_ulp(out[i], exact[i], function.scale ? function.scale(x[i]) : 0); error > largest)
          largest = error, worst = i;
      printf("%-6s f%zu lanes %2u %7.3f ulp at %a%s\n", function.name, 8 * sizeof(F), lanes, largest,
             static_cast<double>(x[worst]), function.binary ? (" ^ " + std::to_string(y[worst])).c_str() : "");
      EXPECT_LE(largest, function.bound                                                     ? function.bound
                         : features.fma || sizeof(F) == 8 || !is_trigonometric(function.op) ? bound
                                                                                            : 1.6)
          << function.name << "(" << x[worst] << ", " << y[worst] << ") = " << out[worst] << ", not "
          << static_cast<F>(exact[worst]) << " (" << lanes << " lanes)";
    }
  }
}

// lgamma(1) and lgamma(2), where a sum of products may end in -0.
template <class F>
void expect_positive_roots(std::string_view level) {
  const Target target = *Target::by_name(level);
  if (!target.runs_on_host()) GTEST_SKIP() << "this machine lacks the feature level";
  std::vector<F> x, unused(32, 1), out(32, -1);
  for (int i = 0; i < 32; ++i) x.push_back(static_cast<F>(1 + i % 2));
  JitFunction code(features_of(target), [&](llvm::Module &module) {
    emit_map(module, features_of(target), Core::lgamma, sizeof(F) == 8, 32);
  });
  code.as<void(const F *, const F *, F *, int64_t)>()(x.data(), unused.data(), out.data(), 32);
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_TRUE(out[i] == 0 && !std::signbit(out[i])) << "lgamma(" << x[i] << ") = " << out[i] << " on " << level;
}

// Processors take a hundred times as long where a product underflows.
template <class F>
void expect_zeros_without_underflow(std::string_view level) {
  const Target target = *Target::by_name(level);
  if (!target.runs_on_host()) GTEST_SKIP() << "this machine lacks the feature level";
  const F below[] = {-std::numeric_limits<F>::infinity(), std::numeric_limits<F>::lowest(), -2000, -1e6};
  std::vector<F> x, unused(32, 1), out(32, -1);
  for (size_t i = 0; i < 32; ++i) x.push_back(below[i % 4]);
  for (const Core op : {Core::exp, Core::exp2}) {
    JitFunction code(features_of(target),
                     [&](llvm::Module &module) { emit_map(module, features_of(target), op, sizeof(F) == 8, 32); });
    std::feclearexcept(FE_ALL_EXCEPT);
    code.as<void(const F *, const F *, F *, int64_t)>()(x.data(), unused.data(), out.data(), 32);
    EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0) << level;
    for (const F y : out) EXPECT_TRUE(y == 0 && !std::signbit(y)) << y << " on " << level;
  }
}

TEST(Math, ExpFarBelowItsRangeIsZeroWithoutUnderflow) {
  for (const char *level : {"x86-64", "v3", "v4"}) {
    expect_zeros_without_underflow<float>(level);
    expect_zeros_without_underflow<double>(level);
  }
}

TEST(Math, LgammaIsPositiveZeroAtItsRoots) {
  for (const char *level : {"x86-64", "v3", "v4"}) {
    expect_positive_roots<float>(level);
    expect_positive_roots<double>(level);
  }
}

TEST(Math, F32IsNearOneUlpOnPlainX86) { measure<float, double>("x86-64", 1.11); }
TEST(Math, F32IsWithinOneUlpOnV3) { measure<float, double>("v3", 1); }
TEST(Math, F32IsWithinOneUlpOnV4) { measure<float, double>("v4", 1); }
TEST(Math, F64IsWithinTwoUlpOnPlainX86) { measure<double, long double>("x86-64", 2); }
TEST(Math, F64IsWithinTwoUlpOnV3) { measure<double, long double>("v3", 2); }
TEST(Math, F64IsWithinTwoUlpOnV4) { measure<double, long double>("v4", 2); }

}  // namespace
}  // namespace kiln::codegen::test
