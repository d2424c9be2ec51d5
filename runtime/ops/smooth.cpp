// Activations that go by exponentials: each is a formula of one element.
#include <cmath>
#include <numbers>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

constexpr double selu_scale = 1.0507009873554804934193349852946, selu_alpha = 1.6732632423543772848170429916717;

// log(1 + exp(x)), which does not overflow inside.
Term log_of_one_and_power(const Term &x) { return max(x, 0) + log1p(exp(-abs(x))); }
template <class T>
T log_of_one_and_power_of(T x) {
  return larger(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}

// x tanh(log(1 + exp(x))): the hyperbolic tangent of a logarithm is a quotient of powers, here of p = exp(-|x|), which
// does not overflow.
Term mish(const Term &x) {
  const Term p = exp(-abs(x)), square = p * p, twice = p + p;
  const Term above = twice + 1, below = square + twice;
  return select(x > 0, x * (above / (above + (square + square))), x * (below / (below + 2)));
}

constexpr auto elu_of = [](ReferenceContext &c, auto x) { return x > 0 ? x : c.attr("alpha").f64() * std::expm1(x); };
constexpr auto selu_of = [](ReferenceContext &, auto x) {
  const decltype(x) scale = selu_scale;
  return scale * (x > 0 ? x : selu_alpha * std::expm1(x));
};
constexpr auto celu_of = [](ReferenceContext &c, auto x) {
  const decltype(x) alpha = c.attr("alpha").f64();
  return x > 0 ? x : alpha * std::expm1(x / alpha);
};
constexpr auto softplus_of = [](ReferenceContext &c, auto x) {
  const decltype(x) beta = c.attr("beta").f64(), scaled = x * beta;
  return scaled > c.attr("threshold").f64() ? x : log_of_one_and_power_of(scaled) / beta;
};

Status infer_elu(InferContext &c) {
  KILN_TRY(require_finite(c, "alpha"));
  return infer_same(c);
}
Status infer_celu(InferContext &c) {
  if (!(c.attr("alpha").f64() > 0)) return c.fail("alpha is ", c.attr("alpha").f64(), ", expected more than 0");
  return infer_same(c);
}
Status infer_softplus(InferContext &c) {
  if (!(c.attr("beta").f64() > 0)) return c.fail("beta is ", c.attr("beta").f64(), ", expected more than 0");
  if (std::isnan(c.attr("threshold").f64())) return c.fail("threshold is NaN, expected a number or an infinity");
  return infer_same(c);
}

void samples_smooth_line(SampleSink &out) {
  unary_samples(out, -8, 8, {0.f, -0.f, INFINITY, NAN, 1e-6f, -1e-6f, 60.f, -60.f, 20.f, 20.5f, 1e-30f});
}
void samples_bounded(SampleSink &out) {
  samples_smooth_line(out);
  out.push_back({.name = "least", .inputs = {f32({1})}, .given = {{0, f32_data({1}, {-INFINITY})}}});
}
void samples_alpha(SampleSink &out) {
  samples_bounded(out);
  for (const double alpha : {0.25, 3.0})
    out.push_back(
        {.name = str_cat("alpha_", alpha), .inputs = {f32({65})}, .attrs = {{"alpha", alpha}}, .low = -6, .high = 6});
}
void samples_softplus(SampleSink &out) {
  samples_bounded(out);
  out.push_back(
      {.name = "beta", .inputs = {f32({65})}, .attrs = {{"beta", 2.5}, {"threshold", 4.0}}, .low = -6, .high = 6});
  out.push_back({.name = "far_threshold",
                 .inputs = {f32({3})},
                 .attrs = {{"threshold", 1e30}},
                 .given = {{0, f32_data({3}, {500.f, -500.f, 90.f})}}});
}

const Op smooth_records[] = {
    with_infer(unary("elu", "x above 0, else alpha (exp(x) - 1).", float_types,
                     {.lower = lower_by<[](LowerContext &c, const Term &x) {
                        return select(x > 0, x, expm1(x) * c.attr("alpha").f64());
                      }>,
                      .reference = reference_of_floats<elu_of>,
                      .gradient = by_rule("x"),
                      .samples = samples_alpha},
                     {number("alpha", "what it goes down by", 1.0)}),
               infer_elu),
    unary("selu", "1.0507... times elu with alpha = 1.6732...: keeps mean 0 and variance 1.", float_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) {
             return select(x > 0, x * selu_scale, expm1(x) * (selu_scale * selu_alpha));
           }>,
           .reference = reference_of_floats<selu_of>,
           .gradient = by_rule("x"),
           .samples = samples_bounded}),
    with_infer(unary("celu", "x above 0, else alpha (exp(x / alpha) - 1).", float_types,
                     {.lower = lower_by<[](LowerContext &c, const Term &x) {
                        const double alpha = c.attr("alpha").f64();
                        return select(x > 0, x, expm1(x / alpha) * alpha);
                      }>,
                      .reference = reference_of_floats<celu_of>,
                      .gradient = by_rule("x"),
                      .samples = samples_alpha},
                     {number("alpha", "above 0: what it goes down by", 1.0)}),
               infer_celu),
    with_infer(unary("softplus", "log(1 + exp(beta x)) / beta, and x where beta x is above threshold.", float_types,
                     {.lower = lower_by<[](LowerContext &c, const Term &x) {
                        const double beta = c.attr("beta").f64();
                        const Term scaled = x * beta;
                        return select(scaled > c.attr("threshold").f64(), x, log_of_one_and_power(scaled) / beta);
                      }>,
                      .reference = reference_of_floats<softplus_of>,
                      .gradient = by_rule("x"),
                      .samples = samples_softplus},
                     {number("beta", "above 0: how sharp the bend is", 1.0),
                      number("threshold", "from where on it is a line", 20.0)}),
               infer_softplus),
    unary("logsigmoid", "log(1 / (1 + exp(-x))), which does not overflow inside.", float_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return -log_of_one_and_power(-x); }>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return -log_of_one_and_power_of(-x); }>,
           .gradient = by_rule("x"),
           .samples = samples_bounded}),
    unary(
        "mish", "x tanh(log(1 + exp(x))).", float_types,
        {.lower = lower_by<[](LowerContext &, const Term &x) { return mish(x); }>,
         .reference =
             reference_of_floats<[](ReferenceContext &, auto x) { return x * std::tanh(log_of_one_and_power_of(x)); }>,
         .gradient = by_rule("x"),
         .samples = samples_smooth_line}),
};

}  // namespace

std::span<const Op> smooth_ops() { return smooth_records; }

}  // namespace kiln::ops
