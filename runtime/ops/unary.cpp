// Ops of one operand, element by element: each is one core op, or a few of them.
#include <cmath>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

using kernel::Core;

void samples_periodic(SampleSink &out) {
  unary_samples(out, -50, 50,
                {0.f, -0.f, INFINITY, NAN, 3.14159265f, 1.57079633f, 1e-20f, -6.2831853f, 1000.f, -99.5f});
}
void samples_positive(SampleSink &out) {
  unary_samples(out, 0.01, 50, {1.f, INFINITY, NAN, 1e-30f, 1e30f, 4.f, 0.25f, -1.f, 0.f});
}
void samples_without_zero(SampleSink &out) {
  unary_samples(out, 0.1, 10, {0.f, -0.f, INFINITY, -INFINITY, NAN, -2.f, 3.f});
}
void samples_signed(SampleSink &out) {
  samples_line(out);
  out.push_back({.name = "integers", .inputs = {i64({5, 7})}});
  out.push_back({.name = "integer_edges", .inputs = {i64({3})}, .given = {{0, i64_data({3}, {i64_min, i64_max, -1})}}});
}
void samples_not(SampleSink &out) {
  out.push_back({.name = "vector", .inputs = {boolean({65})}});
  out.push_back({.name = "symbolic", .inputs = {boolean({3, sym("n")})}, .sizes = {{"n", 7}}});
  out.push_back({.name = "empty", .inputs = {boolean({0})}});
}

constexpr auto negative = [](ReferenceContext &, auto x) {
  if constexpr (std::is_floating_point_v<decltype(x)>)
    return -x;
  else
    return sub<decltype(x)>(0, x);
};
constexpr auto size_of_number = [](ReferenceContext &c, auto x) {
  if constexpr (std::is_floating_point_v<decltype(x)>)
    return std::abs(x);
  else
    return std::is_signed_v<decltype(x)> && x < 0 ? negative(c, x) : x;
};
constexpr auto sign = [](ReferenceContext &, auto x) {
  using T = decltype(x);
  return x > 0 ? T(1) : x < 0 ? T(-1) : x;
};

const Op unary_records[] = {
    unary("neg", "-x; integers wrap.", numeric_types,
          {.lower = lower_as<Core::neg>,
           .reference = reference_of_numbers<negative>,
           .gradient = by_rule("x"),
           .samples = samples_signed}),
    unary("abs", "|x|; integers wrap.", numeric_types,
          {.lower = lower_as<Core::abs>,
           .reference = reference_of_numbers<size_of_number>,
           .gradient = by_rule("x"),
           .samples = samples_signed}),
    unary("reciprocal", "1 / x.", float_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return 1 / x; }>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return 1 / x; }, In::own>,
           .gradient = by_rule("x"),
           .samples = samples_without_zero}),
    unary("sqrt", "The square root; NaN below 0.", float_types,
          {.lower = lower_as<Core::sqrt>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::sqrt(x); }, In::own>,
           .gradient = by_rule("x"),
           .samples = samples_positive}),
    unary("rsqrt", "1 / sqrt(x).", float_types,
          {.lower = lower_as<Core::rsqrt>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return 1 / std::sqrt(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_positive}),
    unary("exp", "e to the power x.", float_types,
          {.lower = lower_as<Core::exp>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::exp(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_line}),
    unary("log", "The natural logarithm; NaN below 0.", float_types,
          {.lower = lower_as<Core::log>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::log(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_positive}),
    unary("tanh", "The hyperbolic tangent.", float_types,
          {.lower = lower_as<Core::tanh>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::tanh(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_line}),
    unary("erf", "The error function.", float_types,
          {.lower = lower_as<Core::erf>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::erf(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_line}),
    unary("sin", "The sine of x in radians.", float_types,
          {.lower = lower_as<Core::sin>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::sin(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_periodic}),
    unary("cos", "The cosine of x in radians.", float_types,
          {.lower = lower_as<Core::cos>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return std::cos(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_periodic}),
    unary("sigmoid", "1 / (1 + exp(-x)).", float_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return sigmoid(x); }>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return 1 / (1 + std::exp(-x)); }>,
           .gradient = by_rule("x"),
           .samples = samples_line}),
    unary("square", "x * x; integers wrap.", numeric_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return x * x; }>,
           .reference = reference_of_numbers<[](ReferenceContext &, auto x) { return mul(x, x); }, In::own>,
           .gradient = by_rule("x"),
           .samples = samples_signed}),
    unary("sign", "1 where x is above 0, -1 where it is below, else x: zeros and NaN.", numeric_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return select(x > 0, 1, select(x < 0, -1, x)); }>,
           .reference = reference_of_numbers<sign>,
           .gradient = zero_gradient("constant on either side of 0"),
           .samples = samples_signed}),
    unary("not", "The negation of a boolean.", dtypes(DType::boolean),
          {.lower = lower_as<Core::logical_not>,
           .reference = reference_of_integers<[](ReferenceContext &, auto x) { return x == 0; }>,
           .gradient = gives_booleans,
           .samples = samples_not}),
};

}  // namespace

std::span<const Op> unary_ops() { return unary_records; }

}  // namespace kiln::ops
