// Activations without a transcendental function: lines that are joined.
#include <cmath>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

Term relu6(const Term &x) { return min(max(x, 0), 6); }
template <class T>
T relu6_of(T x) {
  return smaller(larger(x, T(0)), T(6));
}

// The product overflows where that of the type that it is computed in does.
constexpr auto hardswish = [](ReferenceContext &c, auto x) {
  const auto product = x * relu6_of(x + 3);
  const bool wide = c.results[0].dtype == DType::f64;
  const double narrow = wide ? static_cast<double>(product) : static_cast<float>(product);
  return std::isinf(narrow) ? static_cast<decltype(product)>(narrow) : product / 6;
};
constexpr auto leaky = [](ReferenceContext &c, auto x) { return x > 0 ? x : x * c.attr("negative_slope").f64(); };
constexpr auto shrunk = [](ReferenceContext &c, auto x) {
  const double lambda = c.attr("lambda").f64();
  return is_nan(x) ? x : x > lambda ? x - lambda : x < -lambda ? x + lambda : 0;
};

Status infer_ordered(InferContext &c) {
  if (!(c.attr("min").f64() <= c.attr("max").f64()))
    return c.fail("min is ", c.attr("min").f64(), " and max is ", c.attr("max").f64(), ", expected min <= max");
  return infer_same(c);
}
Status infer_shrink(InferContext &c) {
  if (!(c.attr("lambda").f64() >= 0)) return c.fail("lambda is ", c.attr("lambda").f64(), ", expected at least 0");
  return infer_same(c);
}

Status infer_leaky(InferContext &c) {
  KILN_TRY(require_finite(c, "negative_slope"));
  return infer_same(c);
}
Status infer_threshold(InferContext &c) {
  if (std::isnan(c.attr("threshold").f64())) return c.fail("threshold is NaN, expected a number or an infinity");
  return infer_same(c);
}

// One slope, or one for each channel: dim 1.
Status infer_prelu(InferContext &c) {
  const TensorType &x = c.inputs[0], &slope = c.inputs[1];
  if (slope.rank() > 1) return c.fail("slope is ", slope.text(), ", expected a scalar or 1 dim");
  if (slope.rank() == 1 && !slope.dims[0].is(1)) {
    if (x.rank() < 2) return c.fail("x is ", x.text(), ", expected at least 2 dims for a slope for each channel");
    KILN_TRY(c.require_equal(x.dims[1], slope.dims[0], "x dim 1 and slope dim 0"));
  }
  return infer_same(c);
}
Status lower_prelu(LowerContext &c) {
  std::vector<Expr> channel;
  if (c.inputs[1].rank() == 1) channel.push_back(c.inputs[1].dims[0].is(1) ? Expr(0) : c.axis(1));
  const Term x(c.body, c.load(0)), slope(c.body, c.load(1, std::move(channel)));
  c.body.yield(select(x > 0, x, x * slope).value());
  return {};
}
Status reference_prelu(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &slope = *c.inputs[1];
  const int64_t slopes = slope.size();
  int64_t inner = 1;
  for (size_t d = 2; d < x.shape.size(); ++d) inner *= x.shape[d];
  const ReadElements<double> in(x), by(slope);
  return make_each<double>(c, [&](int64_t k) {
    const double value = in[static_cast<size_t>(k)];
    return value > 0 ? value : value * by[static_cast<size_t>(slopes == 1 ? 0 : k / inner % slopes)];
  });
}

void samples_joint(SampleSink &out) {
  unary_samples(out, -8, 8, {0.f, -0.f, INFINITY, -INFINITY, NAN, 0.5f, -0.5f, 1.f, -1.f, 3.f, -3.f, 6.f});
}
void samples_hardswish(SampleSink &out) {
  samples_joint(out);
  out.push_back({.name = "product_overflows",
                 .inputs = {make_type(DType::f64, {4})},
                 .given = {{0, tensor_of<double>(DType::f64, {4}, {1e308, -1e308, 2.5e307, 1e300})}}});
}
template <const auto &attrs>
void samples_chosen(SampleSink &out) {
  samples_joint(out);
  out.push_back({.name = "chosen", .inputs = {f32({65})}, .attrs = {}, .low = -4, .high = 4});
  for (const auto &[name, value] : attrs) out.back().attrs.emplace(name, value);
}
void samples_prelu(SampleSink &out) {
  const Dim n = sym("n"), c = sym("c");
  out.push_back({.name = "channels", .inputs = {f32({2, 5, 3, 7}), f32({5})}});
  out.push_back({.name = "one", .inputs = {f32({3, 17}), f32({1})}});
  out.push_back({.name = "scalar", .inputs = {f32({33}), f32({})}});
  out.push_back({.name = "matrix", .inputs = {f32({9, 33}), f32({33})}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, c, 3}), f32({c})}, .sizes = {{"n", 2}, {"c", 5}}});
  out.push_back({.name = "empty", .inputs = {f32({0, 4}), f32({4})}});
}

using Chosen = std::pair<const char *, double>;
constexpr Chosen slope_chosen[] = {{"negative_slope", 0.25}};
constexpr Chosen bounds_chosen[] = {{"min", -0.5}, {"max", 2.5}};
constexpr Chosen threshold_chosen[] = {{"threshold", -1.0}, {"value", 20.0}};
constexpr Chosen lambda_chosen[] = {{"lambda", 1.5}};

const Op piecewise_records[] = {
    unary("relu6", "min(max(x, 0), 6).", float_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return relu6(x); }>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return relu6_of(x); }>,
           .gradient = by_rule("x"),
           .samples = samples_joint}),
    with_infer(unary("leaky_relu", "x above 0, else negative_slope * x.", float_types,
                     {.lower = lower_by<[](LowerContext &c, const Term &x) {
                        return select(x > 0, x, x * c.attr("negative_slope").f64());
                      }>,
                      .reference = reference_of_floats<leaky>,
                      .gradient = by_rule("x"),
                      .samples = samples_chosen<slope_chosen>},
                     {number("negative_slope", "of what is not above 0", 0.01)}),
               infer_leaky),
    {{.name = "prelu",
      .doc = "x above 0, else slope * x.",
      .args = {{"x", "[N, C, ...], or any shape for one slope", float_types},
               {"slope", "a scalar, [1], or [C]", float_types}},
      .result_names = {"y"},
      .infer = infer_prelu},
     {.lower = lower_prelu, .reference = reference_prelu, .gradient = by_rule("x, slope"), .samples = samples_prelu}},
    with_infer(unary("hardtanh", "min(max(x, min), max).", float_types,
                     {.lower = lower_by<[](LowerContext &c, const Term &x) {
                        return min(max(x, c.attr("min").f64()), c.attr("max").f64());
                      }>,
                      .reference = reference_of_floats<[](ReferenceContext &c, auto x) {
                        using T = decltype(x);
                        return smaller(larger(x, T(c.attr("min").f64())), T(c.attr("max").f64()));
                      }>,
                      .gradient = by_rule("x"),
                      .samples = samples_chosen<bounds_chosen>},
                     {number("min", "the least", -1.0), number("max", "the largest", 1.0)}),
               infer_ordered),
    unary("hardsigmoid", "relu6(x + 3) / 6.", float_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return relu6(x + 3) / 6; }>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return relu6_of(x + 3) / 6; }>,
           .gradient = by_rule("x"),
           .samples = samples_joint}),
    unary("hardswish", "x * relu6(x + 3) / 6.", float_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return x * relu6(x + 3) / 6; }>,
           .reference = reference_of_floats<hardswish>,
           .gradient = by_rule("x"),
           .samples = samples_hardswish}),
    with_infer(
        unary("threshold", "value where x is at most threshold, else x, and NaN.", float_types,
              {.lower = lower_by<[](LowerContext &c, const Term &x) {
                 return select(x <= c.attr("threshold").f64(), c.attr("value").f64(), x);
               }>,
               .reference = reference_of_floats<[](ReferenceContext &c, auto x) {
                 return x <= c.attr("threshold").f64() ? c.attr("value").f64() : x;
               }>,
               .gradient = by_rule("x"),
               .samples = samples_chosen<threshold_chosen>},
              {number("threshold", "what x has to be above", 0.0), number("value", "in place of the rest", 0.0)}),
        infer_threshold),
    with_infer(unary("hardshrink", "0 from -lambda to lambda, else x.", float_types,
                     {.lower = lower_by<[](LowerContext &c, const Term &x) {
                        return select(abs(x) <= c.attr("lambda").f64(), 0, x);
                      }>,
                      .reference = reference_of_floats<[](ReferenceContext &c, auto x) {
                        return std::abs(double(x)) <= c.attr("lambda").f64() ? 0 : x;
                      }>,
                      .gradient = by_rule("x"),
                      .samples = samples_chosen<lambda_chosen>},
                     {number("lambda", "at least 0", 0.5)}),
               infer_shrink),
    with_infer(unary("softshrink", "x moved towards 0 by lambda, and 0 where it is nearer; NaN stays NaN.", float_types,
                     {.lower = lower_by<[](LowerContext &c, const Term &x) {
                        const double lambda = c.attr("lambda").f64();
                        return select(x > lambda, x - lambda, select(x < -lambda, x + lambda, select(x == x, 0, x)));
                      }>,
                      .reference = reference_of_floats<shrunk>,
                      .gradient = by_rule("x"),
                      .samples = samples_chosen<lambda_chosen>},
                     {number("lambda", "at least 0", 0.5)}),
               infer_shrink),
};

}  // namespace

std::span<const Op> piecewise_ops() { return piecewise_records; }

}  // namespace kiln::ops
