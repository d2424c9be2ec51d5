// Normalisations: whole in the graph, so that patterns can match them, and composed of simpler ops for a
// backend, whose fusion makes one kernel of each.
#include <cmath>

#include "runtime/ops/norms.h"

namespace kiln::ops {
namespace {

const AttrDef eps_attr(double fallback) {
  return {.name = "eps", .doc = "added to the variance, or mean square", .kind = AttrKind::f64, .fallback = fallback};
}

// The last `count` dims of a type, as indices from its end: -count .. -1.
std::vector<int64_t> trailing(int64_t count) {
  std::vector<int64_t> dims;
  for (int64_t d = -count; d < 0; ++d) dims.push_back(d);
  return dims;
}

// rsqrt(mean(square) + eps)
Result<ValueId> inverse_of(DecomposeContext &c, ValueId mean_square) {
  KILN_ASSIGN(ValueId eps, c.scalar(c.type(mean_square).dtype, c.attr("eps").f64()));
  KILN_ASSIGN(ValueId safe, c.add("add", {mean_square, eps}));
  return c.add("rsqrt", {safe});
}

Result<ValueId> mean_of(DecomposeContext &c, ValueId x, int64_t dims) {
  return c.add("mean", {x}, {{"dims", ints(trailing(dims))}, {"keepdim", true}});
}

// ---- batch_norm

// x * s + t, with s = scale * rsqrt(variance + eps) and t = bias - mean * s, which depend on parameters alone.
Status decompose_batch_norm(DecomposeContext &c) {
  const ValueId x = c.node.inputs[0], scale = c.node.inputs[1], bias = c.node.inputs[2], mean = c.node.inputs[3],
                variance = c.node.inputs[4];
  std::vector<int64_t> after_channel;
  for (size_t d = 2; d < c.type(x).rank(); ++d) after_channel.push_back(static_cast<int64_t>(d) - 1);
  auto for_each_channel = [&](ValueId v) { return c.add("unsqueeze", {v}, {{"dims", ints(after_channel)}}); };
  KILN_ASSIGN(ValueId inverse, inverse_of(c, variance));
  KILN_ASSIGN(ValueId s, c.add("mul", {scale, inverse}));
  KILN_ASSIGN(ValueId shift, c.add("mul", {mean, s}));
  KILN_ASSIGN(ValueId t, c.add("sub", {bias, shift}));
  KILN_ASSIGN(s, for_each_channel(s));
  KILN_ASSIGN(t, for_each_channel(t));
  KILN_ASSIGN(ValueId scaled, c.add("mul", {x, s}));
  KILN_ASSIGN(ValueId y, c.add("add", {scaled, t}));
  c.results = {y};
  return {};
}

Status reference_batch_norm(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const int64_t channels = x.shape[1], plane = count_of(std::span(x.shape).subspan(2));
  const auto operand = [&](size_t k) { return ReadElements<double>(*c.inputs[k]); };
  const auto in = operand(0), scales = operand(1), bias = operand(2), mean = operand(3), variance = operand(4);
  return with_wide(x, [&](auto wide) {
    using Wide = decltype(wide);
    return make_each<double>(
        c,
        [&](int64_t k) {
          const auto channel = static_cast<size_t>(k / plane % channels);
          const Wide scale = scales[channel] / std::sqrt(variance[channel] + Wide(c.attr("eps").f64()));
          return (in[static_cast<size_t>(k)] - Wide(mean[channel])) * scale + bias[channel];
        },
        8);
  });
}

// ---- layer_norm, rms_norm

// Operands after x must have the shape of its last `axes` dims.
Status require_trailing_shape(InferContext &c, size_t axes) {
  const TensorType &x = c.inputs[0];
  for (size_t k = 1; k < c.inputs.size(); ++k) {
    KILN_TRY(require_rank(c, k, axes));
    for (size_t d = 0; d < axes; ++d)
      KILN_TRY(c.require_equal(x.dims[x.rank() - axes + d], c.inputs[k].dims[d],
                               str_cat("x dim ", x.rank() - axes + d, " and ", c.arg_name(k), " dim ", d)));
  }
  return infer_same(c);
}
// `count` statistics over the last `axes` dims, which are kept.
void add_statistics(InferContext &c, size_t count, size_t axes) {
  Shape dims = c.inputs[0].dims;
  std::fill(dims.end() - static_cast<ptrdiff_t>(axes), dims.end(), Dim(1));
  if (wants_statistics(c)) c.results.insert(c.results.end(), count, statistic_of(c.inputs[0], dims));
}

Status infer_batch_norm(InferContext &c) {
  KILN_TRY(require_finite(c, "eps", 0));
  return infer_channels(c);
}

Status infer_layer_norm(InferContext &c) {
  KILN_TRY(require_finite(c, "eps", 0));
  const int64_t axes = c.attr("axes").i64(), rank = static_cast<int64_t>(c.inputs[0].rank());
  if (axes < 1 || axes > rank) return c.fail("axes is ", axes, ", expected 1 to ", rank, ", the dims of x");
  KILN_TRY(require_trailing_shape(c, static_cast<size_t>(axes)));
  add_statistics(c, 2, static_cast<size_t>(axes));
  return {};
}

Status infer_rms_norm(InferContext &c) {
  KILN_TRY(require_finite(c, "eps", 0));
  if (c.inputs[0].rank() < 1) return c.fail("x is ", c.inputs[0].text(), ", expected at least 1 dim");
  KILN_TRY(require_trailing_shape(c, 1));
  add_statistics(c, 1, 1);
  return {};
}

// Times scale, plus bias, as far as there are such operands; and the statistics, if they are wanted.
Status finish_norm(DecomposeContext &c, ValueId y, std::vector<ValueId> statistics) {
  if (c.node.inputs.size() > 1) {
    KILN_ASSIGN(y, c.add("mul", {y, c.node.inputs[1]}));
  }
  if (c.node.inputs.size() > 2) {
    KILN_ASSIGN(y, c.add("add", {y, c.node.inputs[2]}));
  }
  c.results = {y};
  for (size_t k = 0; wants_statistics(c) && k < statistics.size(); ++k) {
    KILN_ASSIGN(c.results.emplace_back(), as_statistic(c, statistics[k]));
  }
  return {};
}

Status decompose_layer_norm(DecomposeContext &c) {
  const int64_t axes = c.attr("axes").i64();
  KILN_ASSIGN(ValueId mean, mean_of(c, c.node.inputs[0], axes));
  KILN_ASSIGN(ValueId centred, c.add("sub", {c.node.inputs[0], mean}));
  KILN_ASSIGN(ValueId square, c.add("mul", {centred, centred}));
  KILN_ASSIGN(ValueId variance, mean_of(c, square, axes));
  KILN_ASSIGN(ValueId inverse, inverse_of(c, variance));
  KILN_ASSIGN(ValueId y, c.add("mul", {centred, inverse}));
  return finish_norm(c, y, {mean, inverse});
}

Status decompose_rms_norm(DecomposeContext &c) {
  const ValueId x = c.node.inputs[0];
  KILN_ASSIGN(ValueId square, c.add("mul", {x, x}));
  KILN_ASSIGN(ValueId mean_square, mean_of(c, square, 1));
  KILN_ASSIGN(ValueId inverse, inverse_of(c, mean_square));
  KILN_ASSIGN(ValueId y, c.add("mul", {x, inverse}));
  return finish_norm(c, y, {inverse});
}

// Rows of `width` elements, with their mean subtracted if `centre`.
Status reference_row_norm(ReferenceContext &c, size_t width, bool centre) {
  const RefTensor &x = *c.inputs[0];
  return with_wide(x, [&](auto wide) -> Status {
    using Wide = decltype(wide);
    const auto count = static_cast<Wide>(width);
    const ReadElements<double> all(x), scale(*c.inputs[c.inputs.size() > 1 ? 1 : 0]), bias(*c.inputs.back());
    const WriteElements<double> out(c.results[0]);
    const auto norm_row = [&](size_t row, std::vector<double> &in) {
      const size_t begin = row * width;
      for (size_t k = 0; k < width; ++k) in[k] = all[begin + k];
      Wide mean = 0, square = 0;  // NaN of nothing
      for (size_t k = 0; centre && k < width; ++k) mean += in[k];
      if (centre) mean /= count;
      for (size_t k = 0; k < width; ++k) square += (in[k] - mean) * (in[k] - mean);
      const Wide inverse = 1 / std::sqrt(square / count + c.attr("eps").f64());
      const auto tell = [&](RefTensor &statistic, Wide value) {
        WriteElements<double>(statistic).set(row, static_cast<double>(value));
      };
      if (c.results.size() > 1) tell(c.results.back(), inverse);
      if (c.results.size() > 2) tell(c.results[1], mean);
      for (size_t k = 0; k < width; ++k) {
        Wide y = (in[k] - mean) * inverse;
        if (c.inputs.size() > 1) y *= scale[k];
        if (c.inputs.size() > 2) y += bias[k];
        out.set(begin + k, static_cast<double>(y));
      }
    };
    const auto elements = static_cast<int64_t>(width);
    const int64_t rows = width > 0 ? x.size() / elements : c.results.size() > 1 ? c.results.back().size() : 0;
    return c.for_ranges(rows, 4 * elements, [&](int64_t begin, int64_t end) -> Status {
      std::vector<double> in(width);
      for (int64_t row = begin; row < end; ++row) norm_row(static_cast<size_t>(row), in);
      return {};
    });
  });
}

Status reference_layer_norm(ReferenceContext &c) {
  const std::vector<int64_t> &shape = c.inputs[0]->shape;
  const auto axes = static_cast<size_t>(c.attr("axes").i64());
  return reference_row_norm(c, static_cast<size_t>(count_of(std::span(shape).last(axes))), true);
}
Status reference_rms_norm(ReferenceContext &c) {
  return reference_row_norm(c, static_cast<size_t>(c.inputs[0]->shape.back()), false);
}

// ---- samples

void samples_batch_norm(SampleSink &out) {
  auto sample = [&](const char *name, Shape x, std::map<std::string, int64_t> sizes = {}) {
    const TensorType channel = f32({x[1]});
    out.push_back({.name = name,
                   .inputs = {f32(std::move(x)), channel, channel, channel, channel},
                   .sizes = std::move(sizes),
                   .low = 0.25,  // variances are positive
                   .high = 2});
  };
  sample("image", {2, 3, 7, 9});
  sample("vector", {5, 33});
  sample("sequence", {3, 17, 5});
  sample("one_channel", {2, 1, 4, 4});
  sample("no_images", {0, 3, 4, 4});
  sample("symbolic", {sym("n"), 8, sym("h"), sym("h")}, {{"n", 3}, {"h", 5}});
  out.push_back(out.front());
  out.back().name = "large_eps";
  out.back().attrs = {{"eps", 0.5}};
}

void samples_layer_norm(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  out.push_back({.name = "plain", .inputs = {f32({7, 33})}});
  out.push_back({.name = "scale", .inputs = {f32({7, 33}), f32({33})}});
  out.push_back({.name = "scale_and_bias", .inputs = {f32({2, 9, 65}), f32({65}), f32({65})}});
  out.push_back({.name = "two_axes", .inputs = {f32({5, 7, 9}), f32({7, 9}), f32({7, 9})}, .attrs = {{"axes", 2}}});
  out.push_back({.name = "vector", .inputs = {f32({17})}});
  out.push_back({.name = "one_element", .inputs = {f32({5, 1})}});
  out.push_back({.name = "no_rows", .inputs = {f32({0, 5}), f32({5})}});
  out.push_back({.name = "large_mean", .inputs = {f32({3, 130})}, .low = 9, .high = 11});
  out.push_back({.name = "symbolic",
                 .inputs = {f32({n, m, 32}), f32({32}), f32({32})},
                 .attrs = {{"eps", 0.1}},
                 .sizes = {{"n", 2}, {"m", 5}}});
  out.push_back({.name = "symbolic_width", .inputs = {f32({n, m}), f32({m})}, .sizes = {{"n", 3}, {"m", 17}}});
  out.push_back({.name = "statistics",
                 .inputs = {f32({n, 3, 5}), f32({3, 5})},
                 .attrs = {{"statistics", true}, {"axes", 2}},
                 .sizes = {{"n", 2}}});
  out.push_back(
      {.name = "small_with_statistics", .inputs = {make_type(DType::f16, {3, 9})}, .attrs = {{"statistics", true}}});
}

void samples_rms_norm(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  out.push_back({.name = "plain", .inputs = {f32({7, 33})}});
  out.push_back({.name = "scale", .inputs = {f32({2, 9, 65}), f32({65})}});
  out.push_back({.name = "vector", .inputs = {f32({130})}});
  out.push_back({.name = "one_element", .inputs = {f32({5, 1}), f32({1})}});
  out.push_back({.name = "no_rows", .inputs = {f32({0, 5})}});
  out.push_back({.name = "large_eps", .inputs = {f32({3, 17}), f32({17})}, .attrs = {{"eps", 0.5}}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, m, 64}), f32({64})}, .sizes = {{"n", 2}, {"m", 7}}});
  out.push_back({.name = "symbolic_width", .inputs = {f32({n, m})}, .sizes = {{"n", 3}, {"m", 33}}});
  out.push_back({.name = "statistics",
                 .inputs = {f32({n, 3, 5}), f32({5})},
                 .attrs = {{"statistics", true}},
                 .sizes = {{"n", 2}}});
}

const Op norms_records[] = {
    {{.name = "batch_norm",
      .doc = "Normalises each channel with given statistics: (x - mean) / sqrt(variance + eps) * scale + bias.",
      .args = {{"x", "[N, C, ...]", float_types},
               {"scale", "[C]", float_types},
               {"bias", "[C]", float_types},
               {"mean", "[C]", float_types},
               {"variance", "[C]", float_types}},
      .result_names = {"y"},
      .attrs = {eps_attr(1e-5)},
      .infer = infer_batch_norm},
     {.decompose = decompose_batch_norm,
      .reference = reference_batch_norm,
      .gradient = through_decomposition(),
      .samples = samples_batch_norm}},

    {{.name = "layer_norm",
      .doc = "(x - mean) / sqrt(variance + eps) * scale + bias, with the statistics of the last dims.",
      .flags = op_flags::fewer_results,
      .args = {{"x", "at least `axes` dims", float_types},
               {"scale", "the last `axes` dims of x", float_types, Arity::optional},
               {"bias", "the last `axes` dims of x", float_types, Arity::optional}},
      .result_names = {"y", "mean", "rstd"},
      .attrs = {eps_attr(1e-5),
                {.name = "axes", .doc = "how many trailing dims", .kind = AttrKind::i64, .fallback = 1},
                statistics_attr("further results, in f32 or f64: mean and 1 / sqrt(variance + eps), with dims of 1")},
      .infer = infer_layer_norm},
     {.decompose = decompose_layer_norm,
      .reference = reference_layer_norm,
      .gradient = through_decomposition(),
      .samples = samples_layer_norm}},

    {{.name = "rms_norm",
      .doc = "x / sqrt(mean of x^2 + eps) * scale, over the last dim.",
      .flags = op_flags::fewer_results,
      .args = {{"x", "[..., D]", float_types}, {"scale", "[D]", float_types, Arity::optional}},
      .result_names = {"y", "rstd"},
      .attrs = {eps_attr(1e-6),
                statistics_attr("a second result, in f32 or f64: 1 / sqrt(mean of x^2 + eps), as [..., 1]")},
      .infer = infer_rms_norm},
     {.decompose = decompose_rms_norm,
      .reference = reference_rms_norm,
      .gradient = through_decomposition(),
      .samples = samples_rms_norm}},
};

}  // namespace

std::span<const Op> norm_ops() { return norms_records; }

}  // namespace kiln::ops
