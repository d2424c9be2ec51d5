// Losses of elements and their targets: whole in the graph, and composed of simpler ops for a backend.
#include <cmath>

#include "runtime/ops/composer.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/losses.h"

namespace kiln::ops {
namespace {

Status infer_elements(InferContext &c) {
  KILN_TRY(require_reduction(c));
  KILN_TRY(infer_broadcast(c));
  if (is_reduced(c.attr("reduction"))) c.results[0].dims.clear();
  return {};
}

// As the attribute "reduction" says.
Status give_reduced(DecomposeContext &c, Composer &g, ValueId loss) {
  const AttrValue &reduction = c.attr("reduction");
  return g.give({is_reduced(reduction) ? g(reduction.text_value(), {loss}) : loss});
}

ValueId distance(DecomposeContext &c, Composer &g) {
  return g("abs", {g("sub", {c.node.inputs[0], c.node.inputs[1]})});
}

Status decompose_mse(DecomposeContext &c) {
  Composer g(c);
  const ValueId difference = g("sub", {c.node.inputs[0], c.node.inputs[1]});
  return give_reduced(c, g, g("mul", {difference, difference}));
}
Status decompose_l1(DecomposeContext &c) {
  Composer g(c);
  return give_reduced(c, g, distance(c, g));
}
Status decompose_smooth_l1(DecomposeContext &c) {
  Composer g(c);
  const ValueId size = distance(c, g);
  const double beta = c.attr("beta").f64();
  if (beta == 0) return give_reduced(c, g, size);
  const ValueId half = g.number(size, 0.5), at = g.number(size, beta);
  const ValueId parabola = g("div", {g("mul", {half, g("mul", {size, size})}), at});
  const ValueId line = g("sub", {size, g.number(size, beta / 2)});
  return give_reduced(c, g, g("where", {g("lt", {size, at}), parabola, line}));
}
Status decompose_huber(DecomposeContext &c) {
  Composer g(c);
  const ValueId size = distance(c, g);
  const double delta = c.attr("delta").f64();
  const ValueId parabola = g("mul", {g("mul", {size, size}), g.number(size, 0.5)});
  const ValueId line = g("mul", {g("sub", {size, g.number(size, delta / 2)}), g.number(size, delta)});
  return give_reduced(c, g, g("where", {g("lt", {size, g.number(size, delta)}), parabola, line}));
}

// -(t log(p) + (1 - t) log(1 - p)), with logarithms of at least -100, so that a sure mistake has a finite loss.
Status decompose_bce(DecomposeContext &c) {
  Composer g(c);
  const ValueId p = c.node.inputs[0], t = c.node.inputs[1], one = g.number(p, 1), least = g.number(p, -100);
  const ValueId yes = g("maximum", {g("log", {p}), least});
  const ValueId no = g("maximum", {g("log", {g("sub", {one, p})}), least});
  const ValueId sum = g("add", {g("mul", {t, yes}), g("mul", {g("sub", {one, t}), no})});
  return give_reduced(c, g, g("neg", {sum}));
}

// t (log(t) - x), or exp(t) (t - x) of targets that are logarithms.
Status decompose_kl_div(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0], t = c.node.inputs[1];
  if (c.attr("log_target").boolean()) return give_reduced(c, g, g("mul", {g("exp", {t}), g("sub", {t, x})}));
  return give_reduced(c, g, g("sub", {g("xlogy", {t, t}), g("mul", {t, x})}));
}

// (1 - t) x - (1 + (positive weight - 1) t) log(sigmoid(x)), weighted.
Status decompose_bce_with_logits(DecomposeContext &c) {
  Composer g(c);
  const std::vector<ValueId> &inputs = c.node.inputs;
  const ValueId x = inputs[0], t = inputs[1], one = g.number(x, 1);
  ValueId sure = g("logsigmoid", {x});
  if (inputs.size() > 3) sure = g("mul", {sure, g("add", {g("mul", {g("sub", {inputs[3], one}), t}), one})});
  ValueId loss = g("sub", {g("mul", {g("sub", {one, t}), x}), sure});
  if (inputs.size() > 2) loss = g("mul", {loss, inputs[2]});
  return give_reduced(c, g, loss);
}

// ---- reference kernels

// A reference kernel of losses, each of which is loss(offsets) of walks over `shape`: themselves, their sum in order,
// or their mean.
template <class Wide, size_t N, class Loss>
Status give_losses(const ReferenceContext &c, const std::vector<int64_t> &shape,
                   const std::array<std::vector<int64_t>, N> &strides, Loss loss) {
  const std::string &reduction = c.attr("reduction").text_value();
  const WriteElements<double> out(c.results[0]);
  if (reduction == "none")
    return walk_in_ranges<N>(
        c, shape, strides, [&](size_t k, const auto &at) { out.set(k, static_cast<double>(loss(at))); }, 8);
  Wide sum = 0;
  walk<N>(shape, strides, [&](const auto &at) { sum += loss(at); });
  out.set(0, static_cast<double>(reduction == "sum" ? sum : sum / static_cast<Wide>(count_of(shape))));
  return {};
}

// Of a function of the context and x and target: all elements' losses, then what "reduction" says.
template <auto function>
Status reference_loss(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &t = *c.inputs[1];
  const std::vector<int64_t> shape = broadcast_shape(x.shape, t.shape);
  const ReadElements<double> in(x), target(t);
  return with_wide(x, [&](auto wide) {
    using Wide = decltype(wide);
    return give_losses<Wide, 2>(
        c, shape, {broadcast_strides(x.shape, shape), broadcast_strides(t.shape, shape)}, [&](const auto &at) {
          return function(c, Wide(in[static_cast<size_t>(at[0])]), Wide(target[static_cast<size_t>(at[1])]));
        });
  });
}

// Its further operands are weights; 1 where they are missing.
Status reference_bce_with_logits(ReferenceContext &c) {
  const auto operand = [&](size_t k) -> const RefTensor & { return *c.inputs[k < c.inputs.size() ? k : 0]; };
  std::vector<int64_t> shape;
  for (const RefTensor *x : c.inputs) shape = broadcast_shape(shape, x->shape);
  const auto strides = [&](size_t k) { return broadcast_strides(operand(k).shape, shape); };
  const std::array elements = {ReadElements<double>(operand(0)), ReadElements<double>(operand(1)),
                               ReadElements<double>(operand(2)), ReadElements<double>(operand(3))};
  return with_wide(*c.inputs[0], [&](auto wide) {
    using Wide = decltype(wide);
    return give_losses<Wide, 4>(c, shape, {strides(0), strides(1), strides(2), strides(3)}, [&](const auto &at) {
      const auto element = [&](size_t k) {
        return k < c.inputs.size() ? Wide(elements[k][static_cast<size_t>(at[k])]) : Wide(1);
      };
      const Wide x = element(0), t = element(1);
      const Wide log_sigmoid = smaller(x, Wide(0)) - std::log1p(std::exp(-std::abs(x)));
      const Wide rise = c.inputs.size() > 3 ? 1 + (element(3) - 1) * t : Wide(1);
      return element(2) * ((1 - t) * x - rise * log_sigmoid);
    });
  });
}

constexpr auto square_error = [](ReferenceContext &, auto x, auto t) { return (x - t) * (x - t); };
constexpr auto absolute_error = [](ReferenceContext &, auto x, auto t) { return std::abs(x - t); };
constexpr auto smooth_error = [](ReferenceContext &c, auto x, auto t) {
  const decltype(x) beta = c.attr("beta").f64(), size = std::abs(x - t);
  return size < beta ? size * size / 2 / beta : size - beta / 2;
};
constexpr auto huber_error = [](ReferenceContext &c, auto x, auto t) {
  const decltype(x) delta = c.attr("delta").f64(), size = std::abs(x - t);
  return size < delta ? size * size / 2 : delta * (size - delta / 2);
};
constexpr auto cross_entropy_of = [](ReferenceContext &, auto p, auto t) {
  const decltype(p) least = -100;
  return -(t * larger(std::log(p), least) + (1 - t) * larger(std::log(1 - p), least));
};
constexpr auto divergence = [](ReferenceContext &c, auto x, auto t) {
  if (c.attr("log_target").boolean()) return std::exp(t) * (t - x);
  return (t == 0 ? t - t : t * std::log(t)) - t * x;
};

Status infer_smooth(InferContext &c) {
  if (!(c.attr("beta").f64() >= 0)) return c.fail("beta is ", c.attr("beta").f64(), ", expected at least 0");
  return infer_elements(c);
}
Status infer_huber(InferContext &c) {
  if (!(c.attr("delta").f64() > 0)) return c.fail("delta is ", c.attr("delta").f64(), ", expected more than 0");
  return infer_elements(c);
}

// ---- samples

void samples_elements(SampleSink &out, double low, double high) {
  const Dim n = sym("n");
  const auto loss = [&](const char *name, Shape x, Shape target, const char *reduction,
                        std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(x)), f32(std::move(target))},
                   .attrs = {{"reduction", reduction}},
                   .sizes = std::move(sizes),
                   .low = low,
                   .high = high});
  };
  loss("mean", {7, 33}, {7, 33}, "mean");
  loss("sum", {5, 17}, {5, 17}, "sum");
  loss("none", {65}, {65}, "none");
  loss("one_target", {5, 17}, {}, "none");
  loss("of_nothing", {0, 3}, {0, 3}, "sum");
  loss("symbolic", {n, 3}, {n, 3}, "mean", {{"n", 9}});
}
void samples_errors(SampleSink &out) { samples_elements(out, -3, 3); }
void samples_probabilities(SampleSink &out) {
  samples_elements(out, 0.05, 0.95);
  out.push_back({.name = "sure",
                 .inputs = {f32({4}), f32({4})},
                 .attrs = {{"reduction", "none"}},
                 .given = {{0, f32_data({4}, {0.f, 1.f, 0.f, 1.f})}, {1, f32_data({4}, {0.f, 1.f, 1.f, 0.f})}}});
}
void samples_logits(SampleSink &out) {
  samples_elements(out, -3, 3);
  const auto weighted = [&](const char *name, std::vector<TensorType> inputs, const char *reduction) {
    out.push_back(
        {.name = name, .inputs = std::move(inputs), .attrs = {{"reduction", reduction}}, .low = 0, .high = 3});
  };
  weighted("weighted", {f32({5, 17}), f32({5, 17}), f32({17})}, "mean");
  weighted("positive_weight", {f32({5, 17}), f32({5, 17}), f32({}), f32({17})}, "sum");
  weighted("both_weights", {f32({3, 1, 7}), f32({3, 5, 7}), f32({5, 1}), f32({7})}, "none");
  out.push_back({.name = "sure",
                 .inputs = {f32({6}), f32({6})},
                 .attrs = {{"reduction", "none"}},
                 .given = {{0, f32_data({6}, {90.f, -90.f, 90.f, -90.f, 0.f, NAN})},
                           {1, f32_data({6}, {1.f, 0.f, 0.f, 1.f, 0.5f, 1.f})}}});
}
void samples_kl_div(SampleSink &out) {
  samples_elements(out, 0.05, 0.95);
  const size_t plain = out.size();
  samples_elements(out, -3, 0);
  for (size_t k = plain; k < out.size(); ++k) {
    out[k].name += "_of_logarithms";
    out[k].attrs.emplace("log_target", true);
  }
  out.push_back({.name = "no_probability",
                 .inputs = {f32({3}), f32({3})},
                 .attrs = {{"reduction", "none"}},
                 .given = {{0, f32_data({3}, {-1.f, -2.f, -3.f})}, {1, f32_data({3}, {0.f, 1.f, 0.5f})}}});
}
void samples_smooth(SampleSink &out) {
  samples_errors(out);
  for (const double beta : {0.0, 0.25, 2.0})
    out.push_back({.name = str_cat("beta_", beta), .inputs = {f32({65}), f32({65})}, .attrs = {{"beta", beta}}});
}
void samples_huber(SampleSink &out) {
  samples_errors(out);
  for (const double delta : {0.25, 2.0})
    out.push_back({.name = str_cat("delta_", delta), .inputs = {f32({65}), f32({65})}, .attrs = {{"delta", delta}}});
}
// ---- records

Op loss_of_elements(std::string_view name, std::string_view doc, std::vector<AttrDef> attrs,
                    Status (*infer)(InferContext &), OpMeaning meaning) {
  attrs.push_back(reduction_attr("'mean' or 'sum' of all elements, or 'none'"));
  return {{.name = name,
           .doc = doc,
           .args = {{"x", "any shape", float_types}, {"target", "broadcasts with x", float_types}},
           .result_names = {"y"},
           .attrs = std::move(attrs),
           .infer = infer},
          meaning};
}
Op with_weights(Op op) {
  op.args.push_back({"weight", "broadcasts with x", float_types, Arity::optional});
  op.args.push_back({"positive_weight", "broadcasts with x", float_types, Arity::optional});
  return op;
}
const Op losses_records[] = {
    loss_of_elements("mse_loss", "(x - target)^2.", {}, infer_elements,
                     {.decompose = decompose_mse,
                      .reference = reference_loss<square_error>,
                      .gradient = through_decomposition(),
                      .samples = samples_errors}),
    loss_of_elements("l1_loss", "|x - target|.", {}, infer_elements,
                     {.decompose = decompose_l1,
                      .reference = reference_loss<absolute_error>,
                      .gradient = through_decomposition(),
                      .samples = samples_errors}),
    loss_of_elements("smooth_l1_loss",
                     "(x - target)^2 / (2 beta) where |x - target| < beta, else |x - target| - beta / 2.",
                     {number("beta", "at least 0: where the parabola ends", 1.0)}, infer_smooth,
                     {.decompose = decompose_smooth_l1,
                      .reference = reference_loss<smooth_error>,
                      .gradient = through_decomposition(),
                      .samples = samples_smooth}),
    loss_of_elements("huber_loss",
                     "(x - target)^2 / 2 where |x - target| < delta, else delta (|x - target| - delta / 2).",
                     {number("delta", "above 0: where the parabola ends", 1.0)}, infer_huber,
                     {.decompose = decompose_huber,
                      .reference = reference_loss<huber_error>,
                      .gradient = through_decomposition(),
                      .samples = samples_huber}),
    loss_of_elements("binary_cross_entropy",
                     "-(target log(x) + (1 - target) log(1 - x)) of probabilities, with logarithms of at least -100.",
                     {}, infer_elements,
                     {.decompose = decompose_bce,
                      .reference = reference_loss<cross_entropy_of>,
                      .gradient = by_rule("x, target"),
                      .samples = samples_probabilities}),
    with_weights(loss_of_elements(
        "binary_cross_entropy_with_logits",
        "weight times -(positive_weight target log(s) + (1 - target) log(1 - s)) with s = sigmoid(x), which does not "
        "overflow inside. Of one weight alone the other is a scalar 1.",
        {}, infer_elements,
        {.decompose = decompose_bce_with_logits,
         .reference = reference_bce_with_logits,
         .gradient = through_decomposition(),
         .samples = samples_logits})),
    loss_of_elements("kl_div", "target (log(target) - x), where x is a logarithm; 0 where target is 0 and x is finite.",
                     {flag("log_target", "target is a logarithm, too", false)}, infer_elements,
                     {.decompose = decompose_kl_div,
                      .reference = reference_loss<divergence>,
                      .gradient = through_decomposition(),
                      .samples = samples_kl_div}),
};

}  // namespace

std::span<const Op> losses_ops() { return losses_records; }

}  // namespace kiln::ops
