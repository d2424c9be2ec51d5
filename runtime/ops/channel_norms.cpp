// Normalisations of [N, C, ...] by the statistics of channels, and of vectors by their length: whole in the graph, and
// composed of simpler ops for a backend.
#include <cmath>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/norms.h"

namespace kiln::ops {
namespace {

std::vector<int64_t> dims_from(int64_t first, size_t rank) {
  std::vector<int64_t> dims;
  for (auto d = first; d < static_cast<int64_t>(rank); ++d) dims.push_back(d);
  return dims;
}

// y * scale + bias, as far as there are such operands.
ValueId finished(DecomposeContext &c, Composer &g, ValueId y, size_t rank) {
  std::vector<int64_t> after = dims_from(1, rank - 1);
  const auto channels = [&](size_t k) { return g("unsqueeze", {c.node.inputs[k]}, {{"dims", ints(after)}}); };
  if (c.node.inputs.size() > 1) y = g("mul", {y, channels(1)});
  if (c.node.inputs.size() > 2) y = g("add", {y, channels(2)});
  return y;
}

struct Normalised {
  ValueId y, mean, variance, inverse;
};
// (x - mean) / sqrt(variance + eps), with statistics over `dims`, which are kept.
Normalised normalised(DecomposeContext &c, Composer &g, ValueId x, std::vector<int64_t> dims) {
  const AttrMap over = {{"dims", ints(std::move(dims))}, {"keepdim", true}};
  Normalised n;
  n.mean = g("mean", {x}, over);
  const ValueId centred = g("sub", {x, n.mean});
  n.variance = g("mean", {g("mul", {centred, centred})}, over);
  n.inverse = g("rsqrt", {g("add", {n.variance, g.number(x, c.attr("eps").f64())})});
  n.y = g("mul", {centred, n.inverse});
  return n;
}
// y, and if they are wanted the mean and rstd of [N, groups].
Status with_statistics(DecomposeContext &c, Composer &g, ValueId y, const Normalised &n, const Shape &groups) {
  std::vector<ValueId> results = {y};
  if (!g.ok() || !wants_statistics(c)) return g.give(std::move(results));
  for (const ValueId value : {n.mean, n.inverse}) {
    KILN_ASSIGN(const ValueId wide, as_statistic(c, value));
    results.push_back(g("reshape", {wide}, {{"shape", AttrValue(groups)}}));
  }
  return g.give(std::move(results));
}
// The types of these.
Status add_group_statistics(InferContext &c, const Dim &groups) {
  if (wants_statistics(c))
    c.results.insert(c.results.end(), 2, statistic_of(c.inputs[0], {c.inputs[0].dims[0], groups}));
  return {};
}

Status infer_group_norm(InferContext &c) {
  KILN_TRY(require_finite(c, "eps", 0));
  KILN_TRY(infer_channels(c));
  const int64_t groups = c.attr("groups").i64();
  if (groups < 1) return c.fail("groups is ", groups, ", expected at least 1");
  KILN_TRY(c.require_equal(mod(c.inputs[0].dims[1], groups), 0, "x dim 1 modulo groups and 0"));
  return add_group_statistics(c, groups);
}
Status decompose_group_norm(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const Shape dims = c.type(x).dims;
  const int64_t groups = c.attr("groups").i64();
  Dim inside = floor_div(dims[1], groups);
  for (size_t d = 2; d < dims.size(); ++d) inside *= dims[d];
  const ValueId rows = g("reshape", {x}, {{"shape", AttrValue(Shape{dims[0], groups, inside})}});
  const Normalised n = normalised(c, g, rows, {2});
  const ValueId y = g("reshape", {n.y}, {{"shape", AttrValue(dims)}});
  return with_statistics(c, g, finished(c, g, y, dims.size()), n, {dims[0], groups});
}
Status infer_instance_norm(InferContext &c) {
  KILN_TRY(require_finite(c, "eps", 0));
  if (c.inputs[0].rank() < 3) return c.fail("x is ", c.inputs[0].text(), ", expected [N, C, ...] of at least 3 dims");
  KILN_TRY(infer_channels(c));
  return add_group_statistics(c, c.inputs[0].dims[1]);
}
Status decompose_instance_norm(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const Shape dims = c.type(x).dims;
  const Normalised n = normalised(c, g, x, dims_from(2, dims.size()));
  return with_statistics(c, g, finished(c, g, n.y, dims.size()), n, {dims[0], dims[1]});
}

Status infer_batch_norm_training(InferContext &c) {
  KILN_TRY(require_finite(c, "eps", 0));
  KILN_TRY(infer_channels(c));
  for (int k = 0; k < 2; ++k) c.results.push_back(make_type(c.inputs[0].dtype, {c.inputs[0].dims[1]}));
  return {};
}
Status decompose_batch_norm_training(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const size_t rank = c.type(x).rank();
  std::vector<int64_t> others = dims_from(2, rank);
  others.insert(others.begin(), 0);
  const Normalised n = normalised(c, g, x, others);
  const AttrMap removed = {{"dims", ints(others)}};
  return g.give({finished(c, g, n.y, rank), g("squeeze", {n.mean}, removed), g("squeeze", {n.variance}, removed)});
}

// Groups of channels; with the batch in one group if `over_batch`, and their statistics as further results.
Status reference_channels(ReferenceContext &c, int64_t groups, bool over_batch) {
  const RefTensor &x = *c.inputs[0];
  const int64_t images = x.shape[0], channels = x.shape[1], plane = count_of(std::span(x.shape).subspan(2));
  const int64_t width = groups > 0 ? channels / groups : 0;
  const ReadElements<double> in(x), scale(*c.inputs[c.inputs.size() > 1 ? 1 : 0]), bias(*c.inputs.back());
  const WriteElements<double> out(c.results[0]);
  return with_wide(x, [&](auto wide) -> Status {
    using Wide = decltype(wide);
    // Of images [first, last), one group.
    const auto normalise = [&](int64_t first, int64_t last, int64_t group) {
      const int64_t begin = group * width;
      const auto each = [&](auto body) {
        for (int64_t n = first; n < last; ++n)
          for (int64_t channel = begin; channel < begin + width; ++channel)
            for (int64_t k = 0; k < plane; ++k) {
              const auto i = static_cast<size_t>((n * channels + channel) * plane + k);
              body(static_cast<size_t>(channel), i, in[i]);
            }
      };
      const Wide count = static_cast<Wide>((last - first) * width * plane);
      Wide mean = 0, variance = 0;
      each([&](size_t, size_t, double value) { mean += value / count; });
      each([&](size_t, size_t, double value) { variance += (value - mean) * (value - mean) / count; });
      if (count == 0) mean = variance = static_cast<Wide>(std::nan(""));
      const Wide inverse = 1 / std::sqrt(variance + static_cast<Wide>(c.attr("eps").f64()));
      each([&](size_t channel, size_t i, double value) {
        Wide y = (value - mean) * inverse;
        if (c.inputs.size() > 1) y *= scale[channel];
        if (c.inputs.size() > 2) y += bias[channel];
        out.set(i, static_cast<double>(y));
      });
      if (c.results.size() == 1) return;
      const auto number = static_cast<size_t>(over_batch ? group : first * groups + group);
      WriteElements<double>(c.results[1]).set(number, static_cast<double>(mean));
      WriteElements<double>(c.results[2]).set(number, static_cast<double>(over_batch ? variance : inverse));
    };
    const int64_t together = over_batch ? images : 1, sets = (over_batch ? 1 : images) * groups;
    return c.for_ranges(sets, together * width * plane * 4, [&](int64_t begin, int64_t end) -> Status {
      for (int64_t set = begin; set < end; ++set) normalise(set / groups, set / groups + together, set % groups);
      return {};
    });
  });
}

// ---- l2_normalize, local_response_norm

Status infer_l2_normalize(InferContext &c) {
  KILN_TRY(require_finite(c, "eps", 0));
  KILN_TRY(c.axis(c.attr("dim").i64(), c.inputs[0].rank(), "dim").take_status());
  return infer_same(c);
}
Status decompose_l2_normalize(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const ValueId square = g("sum", {g("mul", {x, x})}, {{"dims", ints({c.attr("dim").i64()})}, {"keepdim", true}});
  return g.give({g("div", {x, g("maximum", {g("sqrt", {square}), g.number(x, c.attr("eps").f64())})})});
}
Status reference_l2_normalize(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const size_t dim = dim_of(c, x.shape.size()), step = step_along(x.shape, dim);
  const ReadElements<double> in(x);
  const WriteElements<double> out(c.results[0]);
  return with_wide(x, [&](auto wide) {
    using Wide = decltype(wide);
    const auto normalise = [&](size_t, size_t first) {
      const std::vector<double> line = line_at(in, first, step, x.shape[dim]);
      Wide square = 0;
      for (const double value : line) square += Wide(value) * value;
      const Wide length = larger(std::sqrt(square), static_cast<Wide>(c.attr("eps").f64()));
      for (size_t k = 0; k < line.size(); ++k) out.set(first + k * step, static_cast<double>(line[k] / length));
    };
    return walk_lines(c, x.shape, dim, normalise, 4);
  });
}

Status infer_local_response(InferContext &c) {
  // Each channel of a window is a part of the decomposition.
  if (const int64_t size = c.attr("size").i64(); size < 1 || size > 1024)
    return c.fail("size is ", size, ", expected 1 to 1024");
  for (const char *name : {"alpha", "beta", "k"}) KILN_TRY(require_finite(c, name));
  return infer_channels(c);
}
// The squares with zeros around the channels, `size` times, each a channel further.
Status decompose_local_response(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const TensorType type = c.type(x);
  const int64_t size = c.attr("size").i64();
  std::vector<int64_t> low(type.rank(), 0), high(type.rank(), 0);
  low[1] = size / 2;
  high[1] = (size - 1) / 2;
  const ValueId squares = g("pad", {g("mul", {x, x})}, {{"low", ints(low)}, {"high", ints(high)}});
  ValueId sum;
  for (int64_t k = 0; k < size; ++k) {
    const ValueId part = g("slice", {squares}, {{"dim", 1}, {"start", Dim(k)}, {"end", type.dims[1] + k}});
    sum = k == 0 ? part : g("add", {sum, part});
  }
  const ValueId scaled = g("mul", {sum, g.number(x, c.attr("alpha").f64() / static_cast<double>(size))});
  const ValueId base = g("add", {scaled, g.number(x, c.attr("k").f64())});
  return g.give({g("div", {x, g("pow", {base, g.number(x, c.attr("beta").f64())})})});
}
Status reference_local_response(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const int64_t size = c.attr("size").i64(), channels = x.shape[1], plane = count_of(std::span(x.shape).subspan(2));
  const ReadElements<double> in(x);
  return with_wide(x, [&](auto wide) {
    using Wide = decltype(wide);
    const Wide alpha = c.attr("alpha").f64(), beta = c.attr("beta").f64(), k = c.attr("k").f64();
    const auto respond = [&](int64_t i) {
      const int64_t channel = i / plane % channels;
      Wide sum = 0;
      for (int64_t other = channel - size / 2; other <= channel + (size - 1) / 2; ++other)
        if (other >= 0 && other < channels) {
          const Wide value = in[static_cast<size_t>(i + (other - channel) * plane)];
          sum += value * value;
        }
      return in[static_cast<size_t>(i)] / std::pow(k + alpha / static_cast<Wide>(size) * sum, beta);
    };
    return make_each<double>(c, respond, 8 + size);
  });
}

// ---- samples

void samples_channels(SampleSink &out, const AttrMap &attrs) {
  const auto norm = [&](const char *name, Shape x, size_t operands, std::map<std::string, int64_t> sizes = {}) {
    Sample sample{.name = name, .inputs = {f32(x)}, .attrs = attrs, .sizes = std::move(sizes)};
    for (size_t k = 0; k < operands; ++k) sample.inputs.push_back(f32({x[1]}));
    out.push_back(std::move(sample));
  };
  const Dim n = sym("n"), h = sym("h");
  norm("plain", {2, 6, 5, 7}, 0);
  norm("scale", {2, 6, 33}, 1);
  norm("scale_and_bias", {3, 4, 5, 3}, 2);
  norm("one_image", {1, 2, 9, 9}, 2);
  norm("volume", {2, 4, 3, 3, 3}, 2);
  norm("symbolic", {n, 8, h, h}, 2, {{"n", 2}, {"h", 5}});
  out.back().attrs.insert_or_assign("eps", 0.25);
}
void samples_group_norm(SampleSink &out) {
  samples_channels(out, {{"groups", 2}});
  out.push_back({.name = "each_its_own", .inputs = {f32({3, 5, 17})}, .attrs = {{"groups", 5}}});
  out.push_back({.name = "all_in_one", .inputs = {f32({3, 33}), f32({33}), f32({33})}, .attrs = {{"groups", 1}}});
  out.push_back({.name = "statistics",
                 .inputs = {f32({sym("n"), 6, 5}), f32({6})},
                 .attrs = {{"groups", 3}, {"statistics", true}},
                 .sizes = {{"n", 2}}});
  out.push_back({.name = "no_channels", .inputs = {f32({2, 0, 5})}, .attrs = {{"groups", 3}, {"statistics", true}}});
}
void samples_instance_norm(SampleSink &out) {
  samples_channels(out, {});
  out.push_back({.name = "statistics",
                 .inputs = {f32({2, sym("c"), 5}), f32({sym("c")})},
                 .attrs = {{"statistics", true}},
                 .sizes = {{"c", 3}}});
}
void samples_batch_norm_training(SampleSink &out) {
  samples_channels(out, {});
  out.push_back({.name = "vectors", .inputs = {f32({17, 5}), f32({5}), f32({5})}});
}
void samples_l2_normalize(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back(sample_of("rows", {7, 33}, {}, {}));
  out.push_back(sample_of("channels", {2, 5, 3, 7}, {{"dim", 1}}, {}));
  out.push_back(sample_of("vector", {257}, {{"dim", 0}}, {}));
  out.push_back(sample_of("large_eps", {5, 17}, {{"eps", 9.0}}, {}));
  out.push_back(sample_of("empty", {0, 3}, {}, {}));
  out.push_back(sample_of("symbolic", {n, 3}, {{"dim", 0}}, {{"n", 9}}));
  out.push_back({.name = "zeros", .inputs = {f32({2})}, .given = {{0, f32_data({2}, {0.f, -0.f})}}});
}
void samples_local_response(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back(sample_of("image", {2, 9, 3, 5}, {{"size", 5}, {"alpha", 0.5}}, {}));
  out.push_back(sample_of("even", {2, 7, 9}, {{"size", 4}, {"alpha", 0.5}, {"beta", 0.5}, {"k", 2.0}}, {}));
  out.push_back(sample_of("itself", {3, 5}, {{"size", 1}, {"alpha", 1.0}}, {}));
  out.push_back(sample_of("wider_than_x", {2, 3, 4}, {{"size", 9}, {"alpha", 1.0}}, {}));
  out.push_back(sample_of("symbolic", {n, 6, n}, {{"size", 3}, {"alpha", 0.25}}, {{"n", 4}}));
}

std::vector<AttrDef> eps_and(double eps, std::vector<AttrDef> more = {}) {
  more.push_back(number("eps", "added to the variance", eps));
  return more;
}
const AttrDef statistics =
    statistics_attr("further results, in f32 or f64: mean and 1 / sqrt(variance + eps), of each image's groups");
Op channel_norm(std::string_view name, std::string_view doc, std::vector<AttrDef> attrs,
                Status (*infer)(InferContext &), OpMeaning meaning) {
  return {{.name = name,
           .doc = doc,
           .args = {{"x", "[N, C, ...]", float_types},
                    {"scale", "[C]", float_types, Arity::optional},
                    {"bias", "[C]", float_types, Arity::optional}},
           .result_names = {"y"},
           .attrs = std::move(attrs),
           .infer = infer},
          meaning};
}
Op with_results(std::vector<std::string_view> names, Op op, uint32_t flags = 0) {
  op.result_names = std::move(names);
  op.flags |= flags;
  return op;
}

const Op channel_norms_records[] = {
    with_results(
        {"y", "mean", "rstd"},
        channel_norm(
            "group_norm",
            "(x - mean) / sqrt(variance + eps) * scale + bias, with the statistics of each image's groups of channels.",
            eps_and(1e-5,
                    {{.name = "groups", .doc = "how many; C is a multiple", .kind = AttrKind::i64, .required = true},
                     statistics}),
            infer_group_norm,
            {.decompose = decompose_group_norm,
             .reference = [](ReferenceContext &c) { return reference_channels(c, c.attr("groups").i64(), false); },
             .gradient = through_decomposition(),
             .samples = samples_group_norm}),
        op_flags::fewer_results),
    with_results(
        {"y", "mean", "rstd"},
        channel_norm(
            "instance_norm",
            "(x - mean) / sqrt(variance + eps) * scale + bias, with the statistics of each image's channels.",
            eps_and(1e-5, {statistics}), infer_instance_norm,
            {.decompose = decompose_instance_norm,
             .reference = [](ReferenceContext &c) { return reference_channels(c, c.inputs[0]->shape[1], false); },
             .gradient = through_decomposition(),
             .samples = samples_instance_norm}),
        op_flags::fewer_results),
    with_results(
        {"y", "mean", "variance"},
        channel_norm(
            "batch_norm_training",
            "(x - mean) / sqrt(variance + eps) * scale + bias, with the statistics of the channels of this batch, "
            "which "
            "are "
            "results, too: [C]; the variance is over n.",
            eps_and(1e-5), infer_batch_norm_training,
            {.decompose = decompose_batch_norm_training,
             .reference = [](ReferenceContext &c) { return reference_channels(c, c.inputs[0]->shape[1], true); },
             .gradient = through_decomposition(),
             .samples = samples_batch_norm_training})),
    {{.name = "l2_normalize",
      .doc = "x divided by its length along a dim, or by eps where that is more.",
      .args = {{"x", "at least one dim", float_types}},
      .result_names = {"y"},
      .attrs = {{.name = "dim", .doc = "of the vectors", .kind = AttrKind::i64, .fallback = -1},
                number("eps", "the least divisor", 1e-12)},
      .infer = infer_l2_normalize},
     {.decompose = decompose_l2_normalize,
      .reference = reference_l2_normalize,
      .gradient = by_rule("x"),
      .samples = samples_l2_normalize}},
    {{.name = "local_response_norm",
      .doc = "x / (k + alpha / size * sum)^beta, where sum is that of the squares of `size` channels around x's.",
      .args = {{"x", "[N, C, ...]", float_types}},
      .result_names = {"y"},
      .attrs = {{.name = "size",
                 .doc = "1 to 1024; of an even one more channels lie before",
                 .kind = AttrKind::i64,
                 .required = true},
                number("alpha", "of the squares", 1e-4),
                number("beta", "the exponent", 0.75),
                number("k", "added to the sum", 1.0)},
      .infer = infer_local_response},
     {.decompose = decompose_local_response,
      .reference = reference_local_response,
      .gradient = through_decomposition(),
      .samples = samples_local_response}},
};

}  // namespace

std::span<const Op> channel_norms_ops() { return channel_norms_records; }

}  // namespace kiln::ops
