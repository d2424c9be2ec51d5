// Elementary functions beyond exp, log, sin and cos: each is one core op, and takes floats only.
#include <cmath>

#include "jit/base/special_functions.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

using kernel::Core;

void samples_above_minus_one(SampleSink &out) {
  unary_samples(out, -0.875, 50, {0.f, -0.f, INFINITY, NAN, -1.f, -1.5f, 1e-30f, -1e-6f, 1e-6f, 1e30f, 1e-40f});
}
void samples_above_zero(SampleSink &out) {
  unary_samples(out, 0.125, 50, {1.f, 0.f, -0.f, INFINITY, NAN, -1.f, 1e-30f, 1e30f, 1024.f, 1000.f, 1e-40f});
}
void samples_exponents(SampleSink &out) {
  unary_samples(out, -8, 8, {0.f, -0.f, INFINITY, -INFINITY, NAN, 1e-30f, -1e-6f, 80.f, -80.f, 1e-40f, -0.35f, 0.35f});
}

void samples_angles(SampleSink &out) {
  unary_samples(out, -1.5, 1.5, {0.f, -0.f, INFINITY, NAN, 3.25f, 1e-30f, -6.25f, 1000.f, -99.5f, 1e-40f});
}
void samples_to_one(SampleSink &out) {
  unary_samples(out, -1, 1, {0.f, -0.f, 1.f, -1.f, 1.5f, -INFINITY, NAN, 0.5f, -0.5f, 0.999f, -0.999f, 1e-30f, 1e-40f});
}
void samples_from_one(SampleSink &out) {
  unary_samples(out, 1, 50, {1.f, 0.5f, -2.f, INFINITY, -INFINITY, NAN, 1.001f, 1e30f});
}
void samples_gamma(SampleSink &out) {
  unary_samples(out, 0.125, 20, {0.f, -0.f, 1.f, 2.f, 0.5f, -0.5f, -1.f, -2.5f, -7.25f, INFINITY, NAN, 1e-6f, 1e30f});
}
void samples_points(SampleSink &out) {
  binary_samples(out, -3, 3);
  edge_pairs(out);
  out.push_back({.name = "near_axes",
                 .inputs = {f32({5}), f32({5})},
                 .given = {{0, f32_data({5}, {1e-30f, 1e30f, -1e-40f, 1e-30f, -3.f})},
                           {1, f32_data({5}, {-1.f, -1.f, -1.f, 1e10f, 3.f})}}});
}

// a + b where both are infinite, or equal: their difference is no number, or 0.
constexpr auto log_of_powers = [](ReferenceContext &, auto a, auto b) {
  using T = decltype(a);
  if (is_nan(a) || is_nan(b)) return a + b;
  const T large = std::max(a, b), distance = a == b ? T(0) : std::abs(a - b);
  return large + std::log1p(std::exp(-distance));
};

void samples_of_powers(SampleSink &out) {
  binary_samples(out, -8, 8);
  edge_pairs(out);
  out.push_back({.name = "far_apart",
                 .inputs = {f32({5}), f32({5})},
                 .given = {{0, f32_data({5}, {1000.f, -1000.f, 100.f, 3e38f, -3e38f})},
                           {1, f32_data({5}, {999.f, -1001.f, -100.f, 3e38f, 3e38f})}}});
}

const Op transcendental_records[] = {
    unary("exp2", "2 to the power x.", float_types,
          {.lower = lower_as<Core::exp2>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::exp2(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_exponents}),
    unary("expm1", "exp(x) - 1, with all digits near 0.", float_types,
          {.lower = lower_as<Core::expm1>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::expm1(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_exponents}),
    unary("log1p", "log(1 + x), with all digits near 0; NaN below -1.", float_types,
          {.lower = lower_as<Core::log1p>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::log1p(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_above_minus_one}),
    unary("log2", "The logarithm to the base 2; NaN below 0.", float_types,
          {.lower = lower_as<Core::log2>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::log2(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_above_zero}),
    unary("log10", "The logarithm to the base 10; NaN below 0.", float_types,
          {.lower = lower_as<Core::log10>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::log10(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_above_zero}),
    unary("tan", "The tangent of x in radians.", float_types,
          {.lower = lower_as<Core::tan>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::tan(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_angles}),
    unary("asin", "The arc sine, from -pi/2 to pi/2; NaN beyond -1 and 1.", float_types,
          {.lower = lower_as<Core::asin>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::asin(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_to_one}),
    unary("acos", "The arc cosine, from 0 to pi; NaN beyond -1 and 1.", float_types,
          {.lower = lower_as<Core::acos>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::acos(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_to_one}),
    unary("atan", "The arc tangent, from -pi/2 to pi/2.", float_types,
          {.lower = lower_as<Core::atan>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::atan(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_line}),
    unary("sinh", "The hyperbolic sine.", float_types,
          {.lower = lower_as<Core::sinh>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::sinh(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_exponents}),
    unary("cosh", "The hyperbolic cosine.", float_types,
          {.lower = lower_as<Core::cosh>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::cosh(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_exponents}),
    unary("asinh", "The inverse of sinh.", float_types,
          {.lower = lower_as<Core::asinh>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::asinh(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_line}),
    unary("acosh", "The inverse of cosh, from 0 on; NaN below 1.", float_types,
          {.lower = lower_as<Core::acosh>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::acosh(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_from_one}),
    unary("atanh", "The inverse of tanh; NaN beyond -1 and 1.", float_types,
          {.lower = lower_as<Core::atanh>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::atanh(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_to_one}),
    unary("erfc", "1 - erf(x), with all digits where it is small.", float_types,
          {.lower = lower_as<Core::erfc>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::erfc(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_line}),
    unary("erfinv", "The number of which erf is x; NaN beyond -1 and 1.", float_types,
          {.lower = lower_as<Core::erfinv>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return inverse_erf(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_to_one}),
    unary("lgamma", "log(|gamma(x)|); infinity at 0 and below it at integers.", float_types,
          {.lower = lower_as<Core::lgamma>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return log_of_gamma(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_gamma}),
    unary("digamma", "The derivative of lgamma; -infinity at 0, infinity at -0, NaN at integers below.", float_types,
          {.lower = lower_as<Core::digamma>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return kiln::digamma(x); }>,
           .gradient = no_gradient("its derivative, trigamma, is no op"),
           .samples = samples_gamma}),
    binary("atan2", "The angle of the point (b, a), from -pi to pi: the arc tangent of a / b in its quadrant.",
           float_types,
           {.lower = lower_as<Core::atan2>,
            .reference = reference_of_floats<[](ReferenceContext &, auto a, auto b) { return std::atan2(a, b); }>,
            .gradient = by_rule("a, b"),
            .samples = samples_points}),
    binary("logaddexp", "log(exp(a) + exp(b)), which does not overflow inside.", float_types,
           {.lower = lower_by<[](LowerContext &, const Term &a, const Term &b) {
              const Term distance = select(a == b, 0, abs(a - b));
              return max(a, b) + log1p(exp(-distance));
            }>,
            .reference = reference_of_floats<log_of_powers>,
            .gradient = by_rule("a, b"),
            .samples = samples_of_powers}),
};

}  // namespace

std::span<const Op> transcendental_ops() { return transcendental_records; }

}  // namespace kiln::ops
