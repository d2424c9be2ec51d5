// Images of other sizes. What lies between elements is weighed one dim after the other, by tables of a few indices and
// weights for each place along a dim.
#include <cmath>

#include "runtime/ops/composer.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"
#include "runtime/ops/windows.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// ---- resample: a table's sums

Status infer_resample(InferContext &c) {
  const TensorType &x = c.inputs[0], &weights = c.inputs[1], &indices = c.inputs[2];
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  KILN_TRY(require_rank(c, 1, 2));
  KILN_TRY(require_rank(c, 2, 2));
  for (size_t d = 0; d < 2; ++d)
    KILN_TRY(c.require_equal(weights.dims[d], indices.dims[d], str_cat("dim ", d, " of weights and indices")));
  c.results = {make_type(x.dtype, x.dims)};
  c.results[0].dims[static_cast<size_t>(dim)] = weights.dims[0];
  return {};
}

Status lower_resample(LowerContext &c) {
  const size_t dim = dim_of(c, c.result.rank());
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  const Expr k = c.reduce_axis(c.inputs[1].dims[1]);
  const Term weight(c.body, c.load(1, {c.axis(dim), k}));
  const int at = c.load(2, {c.axis(dim), k});
  const int valid = c.body.op(Core::in_range, at, c.body.index(c.inputs[0].dims[dim]));
  std::vector<Expr> index = c.axes();
  index[dim] = Expr::value(static_cast<uint32_t>(at));
  const Term x(c.body, c.load(0, std::move(index), valid));
  c.body.yield(select(weight == 0, 0, weight * x).value());
  return {};
}

Status reference_resample(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &weights = *c.inputs[1], &indices = *c.inputs[2];
  RefTensor &y = c.results[0];
  const size_t dim = dim_of(c, y.shape.size()), taps = static_cast<size_t>(weights.shape[1]);
  std::vector<int64_t> strides = dense_strides(x.shape), along(y.shape.size(), 0);
  const int64_t step = std::exchange(strides[dim], 0), size = x.shape[dim];
  along[dim] = 1;
  if (y.size() > 0)
    for (const int64_t i : indices.i)
      if (i < 0 || i >= size) return out_of_range(i, size);
  return with_wide(y, [&](auto zero) -> Status {
    double *out = y.f.data();
    walk<2>(y.shape, {strides, along}, [&](auto at) {
      auto sum = zero;
      for (size_t k = static_cast<size_t>(at[1]) * taps; k < (static_cast<size_t>(at[1]) + 1) * taps; ++k)
        if (weights.f[k] != 0)
          sum += decltype(zero)(weights.f[k]) * x.f[static_cast<size_t>(at[0] + indices.i[k] * step)];
      *out++ = static_cast<double>(sum);
    });
    return {};
  });
}

// ---- what the ops of sizes share

size_t space(const InferContext &c) { return c.inputs[0].rank() - 2; }
const std::vector<double> &reals_of(const AttrValue &list) { return std::get<std::vector<double>>(list.items); }

Status infer_resize(InferContext &c) {
  const TensorType &x = c.inputs[0];
  if (x.rank() < 3 || x.rank() > 5)
    return c.fail("x is ", x.text(), ", expected [N, C, ...], with 1 to 3 dims of space");
  const Shape &size = c.attr("size").dim_list();
  if (size.size() != space(c)) return c.fail("size has ", size.size(), " values, expected ", space(c));
  if (const AttrValue &scale = c.attr("scale"); scale.size() != 0) {
    if (scale.size() != space(c)) return c.fail("scale has ", scale.size(), " values, expected none or ", space(c));
    for (const double s : reals_of(scale))
      if (!(s > 0) || !std::isfinite(s)) return c.fail("scale holds ", s, ", expected a number above 0");
  }
  Shape shape = x.dims;
  for (size_t d = 2; d < shape.size(); ++d) {
    KILN_TRY(require_at_most(c, 1, shape[d], str_cat("at least one element along x dim ", d)));
    KILN_TRY(require_at_most(c, 1, size[d - 2], str_cat("1 <= size ", d - 2)));
    shape[d] = size[d - 2];
  }
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}
// The scale of dim d of space as it is given, or 0.
double scale_of(const AttrMap &attrs, size_t d) {
  const AttrValue &scale = attrs.find("scale")->second;
  return scale.size() ? reals_of(scale)[d] : 0;
}

// ---- nearest

// Place o of the result shows element floor((o + shift) * x's size / the result's), with a shift of a half if so asked.
Status lower_nearest(LowerContext &c) {
  const bool half = c.attr("half_pixel").boolean();
  std::vector<Expr> index = c.axes();
  for (size_t d = 2; d < index.size(); ++d) {
    const Dim &size = c.inputs[0].dims[d];
    const Expr twice = index[d] * 2 + (half ? 1 : 0);
    if (const double scale = scale_of(c.attrs, d - 2); scale != 0) {
      const Term place = floor(Term(c.body, c.body.index(twice)).as(DType::f64) / (2 * scale));
      const Term last(c.body, c.body.index(size - 1));
      index[d] = Expr::value(static_cast<uint32_t>(min(place.as(DType::i64), last).value()));
    } else if (!c.result.dims[d].is(1) || half) {
      index[d] = floor_div(twice * size, c.result.dims[d] * 2);
    } else {
      index[d] = 0;
    }
  }
  c.body.yield(c.load(0, std::move(index)));
  return {};
}

Status reference_nearest(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  const std::vector<int64_t> strides = dense_strides(x.shape), places = dense_strides(y.shape);
  const int64_t half = c.attr("half_pixel").boolean() ? 1 : 0;
  return dispatch(y, [&](auto zero) -> Status {
    using T = decltype(zero);
    for (int64_t k = 0; k < y.size(); ++k) {
      int64_t from = 0;
      for (size_t d = 0; d < y.shape.size(); ++d) {
        int64_t at = k / places[d] % y.shape[d];
        if (d >= 2) {
          const double scale = scale_of(c.attrs, d - 2);
          at = scale == 0
                   ? (2 * at + half) * x.shape[d] / (2 * y.shape[d])
                   : std::min(static_cast<int64_t>(static_cast<double>(2 * at + half) / (2 * scale)), x.shape[d] - 1);
        }
        from += at * strides[d];
      }
      elements<T>(y)[static_cast<size_t>(k)] = elements<T>(x)[static_cast<size_t>(from)];
    }
    return {};
  });
}

// ---- linear and cubic

Status infer_weighed(InferContext &c) {
  const bool aligns = c.attr("align_corners").boolean(), half = c.attr("half_pixel").boolean();
  if (c.attr("antialias").boolean() && (aligns || !half))
    return c.fail("antialias goes with half_pixel and without align_corners");
  return infer_resize(c);
}

bool is_cubic(const Op &op) { return op.name == "resize_cubic"; }
// Keys' cubic: 1 at 0, 0 at the other integers, and from 2 on.
constexpr double steepness(bool antialias) { return antialias ? -0.5 : -0.75; }

// The weights of elements at distances `u` >= 0.
ValueId filtered(Composer &g, ValueId u, bool cubic, double a) {
  const auto n = [&](double value) { return g.number(u, value); };
  if (!cubic) return g("maximum", {g("sub", {n(1), u}), n(0)});
  const auto times = [&](ValueId x, ValueId y) { return g("mul", {x, y}); };
  const auto plus = [&](ValueId x, double y) { return g("add", {x, n(y)}); };
  const ValueId near = plus(times(times(plus(times(u, n(a + 2)), -a - 3), u), u), 1);
  const ValueId far = times(plus(times(plus(times(plus(u, -5), u), 8), u), -4), n(a));
  return g("where", {g("le", {u, n(1)}), near, g("where", {g("lt", {u, n(2)}), far, n(0)})});
}
double filtered(double u, bool cubic, double a) { return cubic ? keys_cubic(u, a) : std::max(1 - u, 0.0); }

Status decompose_weighed(DecomposeContext &c) {
  const bool cubic = is_cubic(c.op);
  Composer g(c);
  ValueId y = c.node.inputs[0];
  const Shape from = c.type(y).dims;
  const DType dtype = c.type(y).dtype;
  const bool aligns = c.attr("align_corners").boolean(), half = c.attr("half_pixel").boolean();
  const bool antialias = c.attr("antialias").boolean();
  const int64_t support = cubic ? 2 : 1;
  for (size_t d = from.size(); d-- > 2;) {
    const Dim &in = from[d], &out = c.attr("size").dim_list()[d - 2];
    const double scale = scale_of(c.node.attrs, d - 2);
    if (in == out && (scale == 0 || scale == 1)) continue;
    const auto iota = [&](Shape shape, int64_t dim) {
      return g("iota", {}, {{"shape", std::move(shape)}, {"dim", dim}, {"dtype", DType::f64}});
    };
    ValueId place = iota({out, 1}, 0);
    const auto n = [&](double value) { return g.number(place, value); };
    const auto count = [&](const Dim &value) { return g.count(place, value); };

    // In x's elements: how far the result's are apart, and where they are.
    const ValueId step = aligns       ? g("div", {count(in - 1), count(max(out - 1, 1))})
                         : scale != 0 ? n(1 / scale)
                                      : g("div", {count(in), count(out)});
    if (half && !aligns)
      place = g("sub", {g("mul", {g("add", {place, n(0.5)}), step}), n(0.5)});
    else
      place = g("mul", {place, step});
    const ValueId width = antialias ? g("maximum", {step, n(1)}) : n(1);
    const Dim wide = !antialias   ? Dim(1)
                     : scale != 0 ? Dim(std::max<int64_t>(1, static_cast<int64_t>(std::ceil(1 / scale))))
                                  : max(ceil_div(in, out), 1);

    // The elements that are nearer than the filter reaches, and their weights.
    const ValueId reach = g("mul", {width, n(static_cast<double>(support))});
    const ValueId first = g("add", {g("floor", {g("sub", {place, reach})}), n(1)});
    const ValueId index = g("add", {first, iota({1, wide * (2 * support)}, 1)}), last = count(in - 1);
    const ValueId clamped = g("minimum", {g("maximum", {index, n(0)}), last});
    const ValueId distance = g("div", {g("abs", {g("sub", {index, place})}), width});
    ValueId weights = filtered(g, distance, cubic, steepness(antialias));
    if (antialias) {
      weights = g("where", {g("eq", {index, clamped}), weights, n(0)});
      weights = g("div", {weights, g("sum", {weights}, {{"dims", ints({1})}, {"keepdim", true}})});
    }
    y = g("resample", {y, g.convert(weights, dtype), g.convert(clamped, DType::i64)},
          {{"dim", static_cast<int64_t>(d)}});
  }
  return g.give({c.node.inputs[0] == y ? g("clone", {y}) : y});
}

// Of a place along a dim: the elements with a weight that is not 0.
struct Weighed {
  std::vector<int64_t> places;
  std::vector<double> weights;
};
Weighed weighed_at(const AttrMap &attrs, size_t d, bool cubic, int64_t at, int64_t in, int64_t out) {
  const auto is = [&](const char *name) { return attrs.find(name)->second.boolean(); };
  const double scale = scale_of(attrs, d);
  double step = scale != 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
  double place = (static_cast<double>(at) + 0.5) * step - 0.5;
  if (is("align_corners")) {
    step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    place = static_cast<double>(at) * step;
  } else if (!is("half_pixel")) {
    place = static_cast<double>(at) * step;
  }
  if (in == out && (scale == 0 || scale == 1)) place = static_cast<double>(at);
  const bool antialias = is("antialias");
  const double width = antialias ? std::max(step, 1.0) : 1, reach = width * (cubic ? 2 : 1);
  Weighed all;
  double sum = 0;
  for (auto k = static_cast<int64_t>(std::floor(place - reach)) + 1; static_cast<double>(k) < place + reach; ++k) {
    if (antialias && (k < 0 || k >= in)) continue;
    const double weight = filtered(std::abs(static_cast<double>(k) - place) / width, cubic, steepness(antialias));
    sum += weight;
    if (weight == 0) continue;
    all.places.push_back(std::clamp<int64_t>(k, 0, in - 1));
    all.weights.push_back(weight);
  }
  if (antialias)
    for (double &weight : all.weights) weight /= sum;
  return all;
}

Status reference_weighed(ReferenceContext &c) {
  const bool cubic = is_cubic(c.op);
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  const size_t rank = y.shape.size();
  std::vector<std::vector<Weighed>> tables(rank);
  for (size_t d = 0; d < rank; ++d)
    for (int64_t at = 0; at < y.shape[d]; ++at)
      tables[d].push_back(d < 2 ? Weighed{{at}, {1}} : weighed_at(c.attrs, d - 2, cubic, at, x.shape[d], y.shape[d]));
  const std::vector<int64_t> strides = dense_strides(x.shape), places = dense_strides(y.shape);
  return with_wide(y, [&](auto zero) -> Status {
    using Wide = decltype(zero);
    for (int64_t k = 0; k < y.size(); ++k) {
      std::vector<std::pair<int64_t, Wide>> terms = {{0, Wide(1)}};
      for (size_t d = 0; d < rank; ++d) {
        const Weighed &along = tables[d][static_cast<size_t>(k / places[d] % y.shape[d])];
        std::vector<std::pair<int64_t, Wide>> more;
        for (const auto &[at, weight] : terms)
          for (size_t j = 0; j < along.places.size(); ++j)
            more.emplace_back(at + along.places[j] * strides[d], weight * along.weights[j]);
        terms = std::move(more);
      }
      Wide sum = 0;
      for (const auto &[at, weight] : terms) sum += weight * x.f[static_cast<size_t>(at)];
      y.f[static_cast<size_t>(k)] = static_cast<double>(sum);
    }
    return {};
  });
}

// ---- samples

void samples_resample(SampleSink &out) {
  const auto sample = [&](const char *name, Shape x, int64_t dim, std::vector<float> weights,
                          std::vector<int64_t> indices, std::map<std::string, int64_t> sizes = {}) {
    const int64_t rows = static_cast<int64_t>(weights.size()) / 2;
    out.push_back({.name = name,
                   .inputs = {f32(std::move(x)), f32({rows, 2}), i64({rows, 2})},
                   .attrs = {{"dim", dim}},
                   .sizes = std::move(sizes),
                   .given = {{1, f32_data({rows, 2}, weights)}, {2, i64_data({rows, 2}, indices)}}});
  };
  sample("rows", {4, 17}, 0, {1, 0, 0.5f, 0.5f, 0.25f, 2}, {3, 0, 0, 1, 2, 2});
  sample("columns", {3, 5}, -1, {1, 0, 0.5f, 0.5f, -1, 2}, {4, 0, 0, 1, 2, 3});
  sample("middle", {2, 3, 4}, 1, {1, -0.5f}, {2, 0});
  sample("none", {3, 0}, 0, {1, 1}, {0, 2});
  sample("symbolic", {sym("n"), 5}, 0, {1, 0, 0.5f, 0.5f}, {1, 0, 2, 1}, {{"n", 3}});
  sample("weight_0_of_an_infinity", {3}, 0, {0, 1, 1, 0.5f}, {0, 1, 0, 2});
  out.back().given.emplace(0, f32_data({3}, {INFINITY, 2.f, 1.f}));
}

struct Sizes {
  const char *name;
  Shape x, size;
  AttrMap attrs = {};
  std::map<std::string, int64_t> sizes = {};
};
void add_sizes(SampleSink &out, std::vector<Sizes> all, const AttrMap &attrs) {
  for (Sizes &each : all) {
    AttrMap merged = attrs;
    for (const auto &[name, value] : each.attrs) merged.insert_or_assign(name, value);
    merged.insert_or_assign("size", AttrValue(std::move(each.size)));
    out.push_back(sample_of(each.name, std::move(each.x), std::move(merged), std::move(each.sizes)));
  }
}
AttrValue reals(std::vector<double> values) { return AttrValue(std::move(values)); }

void samples_nearest(SampleSink &out) {
  const Dim n = sym("n"), h = sym("h"), w = sym("w");
  add_sizes(out,
            {{"doubled", {2, 3, 4, 5}, {8, 10}},
             {"fewer", {1, 2, 7, 9}, {3, 4}},
             {"odd", {1, 2, 4, 3}, {7, 8}},
             {"halves", {1, 2, 7, 4}, {3, 6}, {{"half_pixel", true}}},
             {"sequence", {2, 3, 5}, {9}},
             {"volume", {1, 2, 2, 3, 2}, {3, 3, 5}},
             {"to_one", {1, 3, 5, 4}, {1, 1}},
             {"by_scale", {1, 2, 5, 4}, {7, 6}, {{"scale", reals({1.5, 1.625})}}},
             {"by_scale_of_halves", {1, 2, 5, 4}, {3, 6}, {{"scale", reals({0.625, 1.625})}, {"half_pixel", true}}},
             {"no_images", {0, 2, 3, 3}, {6, 6}},
             {"symbolic", {n, 2, h, w}, {2 * h, w + 2}, {}, {{"n", 2}, {"h", 3}, {"w", 4}}}},
            {});
}
void samples_weighed(SampleSink &out) {
  const Dim n = sym("n"), h = sym("h"), w = sym("w");
  const AttrMap corners = {{"align_corners", true}}, edges = {{"half_pixel", false}}, smooth = {{"antialias", true}};
  add_sizes(out,
            {{"doubled", {2, 2, 4, 5}, {8, 10}},
             {"fewer", {1, 2, 7, 9}, {3, 4}},
             {"aligned", {1, 2, 4, 3}, {7, 5}, corners},
             {"aligned_to_one", {1, 2, 4, 3}, {1, 2}, corners},
             {"from_edges", {1, 2, 4, 6}, {7, 4}, edges},
             {"one_dim_alone", {1, 2, 4, 3}, {4, 7}},
             {"same", {1, 2, 3, 3}, {3, 3}},
             {"from_one", {1, 2, 1, 1}, {3, 2}},
             {"by_scale", {1, 2, 5, 4}, {7, 6}, {{"scale", reals({1.5, 1.625})}}},
             {"smooth_fewer", {1, 2, 9, 11}, {3, 4}, smooth},
             {"smooth_more", {1, 2, 4, 5}, {7, 9}, smooth},
             {"no_images", {0, 2, 3, 3}, {6, 6}},
             {"symbolic", {n, 2, h, w}, {2 * h, w + 2}, {}, {{"n", 2}, {"h", 3}, {"w", 4}}},
             {"smooth_symbolic", {n, 2, h, 4}, {floor_div(h, 2), 3}, smooth, {{"n", 1}, {"h", 7}}}},
            {});
}
void samples_linear(SampleSink &out) {
  samples_weighed(out);
  add_sizes(out, {{"sequence", {2, 3, 5}, {9}}, {"volume", {1, 2, 2, 3, 2}, {3, 3, 4}}}, {});
}

// ---- records

AttrDef flag(std::string_view name, std::string_view doc, bool fallback) {
  return {.name = name, .doc = doc, .kind = AttrKind::boolean, .fallback = fallback};
}
const AttrDef size = list("size", "of the result's dims of space, at least 1", AttrKind::dim);
const AttrDef scale = {.name = "scale",
                       .doc = "sizes of the result over those of x, by which places are found; none: as the sizes are",
                       .kind = AttrKind::f64,
                       .is_list = true,
                       .fallback = AttrValue(std::vector<double>())};

Op resizing(std::string_view name, std::string_view doc, DTypes types, std::vector<AttrDef> more,
            Status (*infer)(InferContext &), OpMeaning meaning) {
  std::vector<AttrDef> attrs = {size, scale};
  attrs.insert(attrs.end(), more.begin(), more.end());
  Op op = unary(name, doc, types, meaning, std::move(attrs));
  op.args[0].doc = "[N, C, W], [N, C, H, W] or [N, C, D, H, W]";
  op.infer = infer;
  return op;
}
Op weighing(std::string_view name, std::string_view doc, OpMeaning meaning) {
  return resizing(
      name, doc, float_types,
      {flag("align_corners", "the first and last elements of x and the result are at the same places", false),
       flag("half_pixel", "elements are at the middle of their share of the image, else at its begin", true),
       flag("antialias", "where the result is smaller, the filter is as much wider", false)},
      infer_weighed, meaning);
}
Op nearest() {
  Op op = resizing(
      "resize_nearest",
      "Element floor(o * x's size / size) of x at each place o. PyTorch's nearest, which computes that in "
      "f32; with half_pixel its nearest-exact.",
      any_type, {flag("half_pixel", "o + 1/2 in place of o", false)}, infer_resize,
      {.lower = lower_nearest, .reference = reference_nearest, .gradient = by_rule("x"), .samples = samples_nearest});
  op.flags = op_flags::moves;
  return op;
}

const Op records[] = {
    {{.name = "resample",
      .doc =
          "Along one dim, weighted sums of elements: y[o] = sum of weights[o, k] * x[indices[o, k]] over k. What has "
          "the weight 0 adds nothing, be it infinite. An index out of range is an error.",
      .args = {{"x", "any shape", float_types},
               {"weights", "[O, K]", float_types},
               {"indices", "[O, K], 0 <= index < x's size along dim", dtypes(DType::i64), Arity::one,
                /*same_dtype=*/false}},
      .result_names = {"y"},
      .attrs = {dim_attr("of x")},
      .infer = infer_resample},
     {.lower = lower_resample,
      .reference = reference_resample,
      .gradient = by_rule("x, weights"),
      .samples = samples_resample}},
    nearest(),
    weighing("resize_linear",
             "x at other sizes, linear between elements: bilinear of images. What has the weight 0 adds nothing, be it "
             "infinite.",
             {.decompose = decompose_weighed,
              .reference = reference_weighed,
              .gradient = through_decomposition(),
              .samples = samples_linear}),
    weighing(
        "resize_cubic",
        "x at other sizes, by Keys' cubics with a = -0.75, or -0.5 with antialias: bicubic of images. What has the "
        "weight 0 adds nothing, be it infinite.",
        {.decompose = decompose_weighed,
         .reference = reference_weighed,
         .gradient = through_decomposition(),
         .samples = samples_weighed}),
};

}  // namespace

std::span<const Op> resize_ops() { return records; }

}  // namespace kiln::ops
