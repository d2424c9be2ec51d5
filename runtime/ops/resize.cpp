// Images of other sizes. What lies between elements is weighed one dim after the other, by tables of a few indices and
// weights for each place along a dim.
#include <cmath>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"
#include "runtime/ops/resizing.h"

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
  const RefTensor &x = *c.inputs[0], &y = c.results[0];
  const size_t dim = dim_of(c, y.shape.size()), taps = static_cast<size_t>(c.inputs[1]->shape[1]);
  std::vector<int64_t> strides = dense_strides(x.shape), along(y.shape.size(), 0);
  const int64_t step = std::exchange(strides[dim], 0);
  along[dim] = 1;
  if (y.size() > 0) KILN_TRY(require_in_range(c, *c.inputs[2], x.shape[dim]));
  const ReadElements<double> in(x), weights(*c.inputs[1]);
  const ReadElements<int64_t> indices(*c.inputs[2]);
  const WriteElements<double> out(c.results[0]);
  return with_wide(y, [&](auto zero) {
    const auto sum_taps = [&](size_t number, auto at) {
      auto sum = zero;
      for (size_t k = static_cast<size_t>(at[1]) * taps; k < (static_cast<size_t>(at[1]) + 1) * taps; ++k)
        if (const double weight = weights[k]; weight != 0)
          sum += decltype(zero)(weight) * in[static_cast<size_t>(at[0] + indices[k] * step)];
      out.set(number, static_cast<double>(sum));
    };
    return walk_in_ranges<2>(c, y.shape, {strides, along}, sum_taps, static_cast<int64_t>(taps));
  });
}

// ---- nearest

Status infer_resize(InferContext &c) {
  KILN_ASSIGN(Shape shape, resized_shape(c, c.inputs[0], "x"));
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}

// Place o of the result shows element floor((o + shift) * x's size / the result's), with a shift of a half if so asked.
Status lower_nearest(LowerContext &c) {
  const bool half = c.attr("half_pixel").boolean();
  std::vector<Expr> index = c.axes();
  for (size_t d = 2; d < index.size(); ++d) {
    const Dim &size = c.inputs[0].dims[d];
    const Expr twice = index[d] * 2 + (half ? 1 : 0);
    if (const double scale = resize_scale(c.attrs, d - 2); scale != 0) {
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
  const RefTensor &x = *c.inputs[0], &y = c.results[0];
  const std::vector<int64_t> strides = dense_strides(x.shape), places = dense_strides(y.shape);
  return pick_each(c, x, [&](int64_t k) {
    int64_t from = 0;
    for (size_t d = 0; d < y.shape.size(); ++d) {
      int64_t at = k / places[d] % y.shape[d];
      if (d >= 2) at = nearest_at(c.attrs, d - 2, at, x.shape[d], y.shape[d]);
      from += at * strides[d];
    }
    return from;
  });
}

// ---- linear and cubic

Status infer_weighed(InferContext &c) {
  KILN_TRY(require_filter(c));
  return infer_resize(c);
}

Status decompose_weighed(DecomposeContext &c) {
  Composer g(c);
  ValueId y = c.node.inputs[0];
  const TensorType type = c.type(y);
  for (size_t d = type.rank(); d-- > 2;) {
    const Dim &in = type.dims[d], &out = c.attr("size").dim_list()[d - 2];
    if (!resizes(c.node.attrs, d - 2, in, out)) continue;
    const ResizeTable table = resize_table(c, g, d - 2, in, out, type.dtype);
    y = g("resample", {y, table.weights, table.indices}, {{"dim", static_cast<int64_t>(d)}});
  }
  return g.give({c.node.inputs[0] == y ? g("clone", {y}) : y});
}

Status reference_weighed(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const ResizeTerms terms(c.attrs, is_cubic(c.op), x.shape, c.results[0].shape);
  const ReadElements<double> in(x);
  const auto weigh = [&](int64_t k) {
    long double sum = 0;
    for (const auto &[at, weight] : terms.at(k)) sum += weight * in[at];
    return sum;
  };
  return make_each<double>(c, weigh, 32);
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

void samples_nearest(SampleSink &out) {
  add_resize_samples(
      out, {{"doubled", "2, 3, 4, 5", "8, 10"},
            {"fewer", "1, 2, 7, 9", "3, 4"},
            {"odd", "1, 2, 4, 3", "7, 8"},
            {"halves", "1, 2, 7, 4", "3, 6", {{"half_pixel", true}}},
            {"sequence", "2, 3, 5", "9"},
            {"volume", "1, 2, 2, 3, 2", "3, 3, 5"},
            {"to_one", "1, 3, 5, 4", "1, 1"},
            {"by_scale", "1, 2, 5, 4", "7, 6", {{"scale", reals({1.5, 1.625})}}},
            {"by_scale_of_halves", "1, 2, 5, 4", "3, 6", {{"scale", reals({0.625, 1.625})}, {"half_pixel", true}}},
            {"no_images", "0, 2, 3, 3", "6, 6"},
            {"symbolic", "n, 2, h, w", "2 * h, w + 2", {}, {{"n", 2}, {"h", 3}, {"w", 4}}}});
}
void samples_weighed(SampleSink &out) {
  const AttrMap corners = {{"align_corners", true}}, edges = {{"half_pixel", false}}, smooth = {{"antialias", true}};
  add_resize_samples(out, {{"doubled", "2, 2, 4, 5", "8, 10"},
                           {"fewer", "1, 2, 7, 9", "3, 4"},
                           {"aligned", "1, 2, 4, 3", "7, 5", corners},
                           {"aligned_to_one", "1, 2, 4, 3", "1, 2", corners},
                           {"from_edges", "1, 2, 4, 6", "7, 4", edges},
                           {"one_dim_alone", "1, 2, 4, 3", "4, 7"},
                           {"same", "1, 2, 3, 3", "3, 3"},
                           {"from_one", "1, 2, 1, 1", "3, 2"},
                           {"by_scale", "1, 2, 5, 4", "7, 6", {{"scale", reals({1.5, 1.625})}}},
                           {"smooth_fewer", "1, 2, 9, 11", "3, 4", smooth},
                           {"smooth_more", "1, 2, 4, 5", "7, 9", smooth},
                           {"no_images", "0, 2, 3, 3", "6, 6"},
                           {"symbolic", "n, 2, h, w", "2 * h, w + 2", {}, {{"n", 2}, {"h", 3}, {"w", 4}}},
                           {"smooth_symbolic", "n, 2, h, 4", "h // 2, 3", smooth, {{"n", 1}, {"h", 7}}}});
}
void samples_resize_linear(SampleSink &out) {
  samples_weighed(out);
  add_resize_samples(out, {{"sequence", "2, 3, 5", "9"}, {"volume", "1, 2, 2, 3, 2", "3, 3, 4"}});
}

// ---- records

Op resizing(std::string_view name, std::string_view doc, DTypes types, std::vector<AttrDef> more,
            Status (*infer)(InferContext &), OpMeaning meaning) {
  Op op = unary(name, doc, types, meaning, resize_attrs("of the result's dims of space, at least 1", std::move(more)));
  op.args[0].doc = "[N, C, W], [N, C, H, W] or [N, C, D, H, W]";
  op.infer = infer;
  return op;
}
Op weighing(std::string_view name, std::string_view doc, OpMeaning meaning) {
  return resizing(name, doc, float_types, filter_attrs(), infer_weighed, meaning);
}
Op nearest() {
  Op op = resizing(
      "resize_nearest",
      "Element floor(o * x's size / size) of x at each place o. PyTorch's nearest, which computes that in "
      "f32; with half_pixel its nearest-exact.",
      any_type, {half_pixel_attr("o + 1/2 in place of o", false)}, infer_resize,
      {.lower = lower_nearest, .reference = reference_nearest, .gradient = by_rule("x"), .samples = samples_nearest});
  op.flags = op_flags::moves;
  return op;
}

const Op resize_records[] = {
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
              .samples = samples_resize_linear}),
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

std::span<const Op> resize_ops() { return resize_records; }

}  // namespace kiln::ops
