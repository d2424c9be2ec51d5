// Activations: whole in the graph, so that patterns can match them, and composed of simpler ops for a backend.
#include <cmath>
#include <numbers>

#include "runtime/ops/composer.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

Status decompose_relu(DecomposeContext &c) {
  const ValueId x = c.node.inputs[0];
  KILN_ASSIGN(ValueId zero, c.scalar(c.type(x).dtype, 0));
  KILN_ASSIGN(ValueId y, c.add("maximum", {x, zero}));
  c.results = {y};
  return {};
}

Status decompose_silu(DecomposeContext &c) {
  const ValueId x = c.node.inputs[0];
  KILN_ASSIGN(ValueId gate, c.add("sigmoid", {x}));
  KILN_ASSIGN(ValueId y, c.add("mul", {x, gate}));
  c.results = {y};
  return {};
}

bool by_tanh(const AttrValue &approximate) { return approximate.text_value() == "tanh"; }

Status infer_gelu(InferContext &c) {
  KILN_TRY(require_word(c, "approximate", {"none", "tanh"}));
  return infer_same(c);
}

// x/2 * (1 + erf(x / sqrt 2)), or x/2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
Status decompose_gelu(DecomposeContext &c) {
  const ValueId x = c.node.inputs[0];
  const DType dtype = c.type(x).dtype;
  auto times = [&](ValueId v, double factor) -> Result<ValueId> {
    KILN_ASSIGN(ValueId scalar, c.scalar(dtype, factor));
    return c.add("mul", {v, scalar});
  };
  ValueId curve;
  if (by_tanh(c.attr("approximate"))) {
    KILN_ASSIGN(ValueId square, c.add("mul", {x, x}));
    KILN_ASSIGN(ValueId cube, c.add("mul", {square, x}));
    KILN_ASSIGN(ValueId small, times(cube, 0.044715));
    KILN_ASSIGN(ValueId inner, c.add("add", {x, small}));
    KILN_ASSIGN(ValueId scaled, times(inner, std::sqrt(2 / std::numbers::pi)));
    KILN_ASSIGN(curve, c.add("tanh", {scaled}));
  } else {
    KILN_ASSIGN(ValueId scaled, times(x, std::numbers::sqrt2 / 2));
    KILN_ASSIGN(curve, c.add("erf", {scaled}));
  }
  KILN_ASSIGN(ValueId one, c.scalar(dtype, 1));
  KILN_ASSIGN(ValueId gate, c.add("add", {curve, one}));
  KILN_ASSIGN(ValueId half, times(x, 0.5));
  KILN_ASSIGN(ValueId y, c.add("mul", {half, gate}));
  c.results = {y};
  return {};
}

constexpr auto gelu_by_tanh = [](ReferenceContext &, auto x) {
  using Wide = decltype(x);
  const Wide curve = std::tanh(std::sqrt(2 / std::numbers::pi_v<Wide>) * (x + Wide(0.044715) * x * x * x));
  return x / 2 * (1 + curve);
};
constexpr auto gelu_by_erf = [](ReferenceContext &, auto x) {
  return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<decltype(x)>));
};
Status reference_gelu(ReferenceContext &c) {
  return by_tanh(c.attr("approximate")) ? reference_of_floats<gelu_by_tanh>(c) : reference_of_floats<gelu_by_erf>(c);
}

void samples_activation(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back({.name = "vector", .inputs = {f32({257})}, .low = -6, .high = 6});
  out.push_back({.name = "matrix", .inputs = {f32({7, 33})}});
  out.push_back({.name = "scalar", .inputs = {f32({})}});
  out.push_back({.name = "empty", .inputs = {f32({0, 5})}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, 3})}, .sizes = {{"n", 17}}});
  out.push_back(
      {.name = "edges", .inputs = {f32({6})}, .given = {{0, f32_data({6}, {0.f, -0.f, NAN, INFINITY, 30.f, -30.f})}}});
}

const Op activation_records[] = {
    {{.name = "relu",
      .doc = "max(x, 0); NaN stays NaN.",
      .args = {{"x", "any shape", numeric_types}},
      .result_names = {"y"},
      .infer = infer_same},
     {.decompose = decompose_relu,
      .reference = reference_of_numbers<[](ReferenceContext &, auto x) { return larger(x, decltype(x)(0)); }, In::own>,
      .gradient = by_rule("x"),
      .samples =
          [](SampleSink &out) {
            samples_activation(out);
            out.push_back({.name = "integers", .inputs = {i64({5, 7})}});
          }}},

    {{.name = "silu",
      .doc = "x * sigmoid(x), also called swish.",
      .args = {{"x", "any shape", float_types}},
      .result_names = {"y"},
      .infer = infer_same},
     {.decompose = decompose_silu,
      .reference = reference_of_floats<[](ReferenceContext &, auto x) { return x / (1 + std::exp(-x)); }>,
      .gradient = through_decomposition(),
      .samples = samples_activation}},

    {{.name = "gelu",
      .doc = "x times the normal distribution's cumulative function at x.",
      .args = {{"x", "any shape", float_types}},
      .result_names = {"y"},
      .attrs = {{.name = "approximate",
                 .doc = "'none': by erf; 'tanh': the usual approximation",
                 .kind = AttrKind::text,
                 .fallback = "none"}},
      .infer = infer_gelu},
     {.decompose = decompose_gelu,
      .reference = reference_gelu,
      .gradient = through_decomposition(),
      .samples =
          [](SampleSink &out) {
            samples_activation(out);
            const size_t exact = out.size();
            samples_activation(out);
            for (size_t k = exact; k < out.size(); ++k) {
              out[k].name += "_tanh";
              out[k].attrs = {{"approximate", "tanh"}};
            }
          }}},

    unary("softsign", "x / (1 + |x|).", float_types,
          {.lower = lower_by<[](LowerContext &, const Term &x) { return x / (abs(x) + 1); }>,
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return x / (1 + std::abs(x)); }>,
           .gradient = by_rule("x"),
           .samples = samples_activation}),
    unary("tanhshrink", "x - tanh(x).", float_types,
          {.decompose = [](DecomposeContext &c) -> Status {
             Composer g(c);
             return g.give({g("sub", {c.node.inputs[0], g("tanh", {c.node.inputs[0]})})});
           },
           .reference = reference_of_floats<[](ReferenceContext &, auto x) { return x - std::tanh(x); }>,
           .gradient = through_decomposition(),
           .samples = samples_activation}),
};

}  // namespace

std::span<const Op> activation_ops() { return activation_records; }

}  // namespace kiln::ops
