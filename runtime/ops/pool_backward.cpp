// The gradients of pools: those of their results, put where they came from.
#include "runtime/ops/backward.h"
#include "runtime/ops/composer.h"
#include "runtime/ops/formula.h"
#include "runtime/ops/pooling.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// dx of dy: the dims of space are those that "size" tells.
Result<Shape> shape_of_x(InferContext &c, const Shape &dy) {
  const size_t n = space_of(c.op);
  const Shape &size = c.attr("size").dim_list();
  if (size.size() != n) return c.fail("size has ", size.size(), " values, expected ", n);
  KILN_TRY(require_shape(c, size, "size"));
  Shape shape = {dy[0], dy[1]};
  shape.insert(shape.end(), size.begin(), size.end());
  return shape;
}

// ---- max_pool_backward: by the places that the pool found

// Of a window that lies in padding.
constexpr int64_t nowhere = i64_max;

Status infer_max(InferContext &c) {
  const TensorType &indices = c.inputs[0], &dy = c.inputs[1];
  for (size_t k : {0, 1}) KILN_TRY(require_rank(c, k, 2 + space_of(c.op)));
  for (size_t d = 0; d < dy.rank(); ++d)
    KILN_TRY(c.require_equal(indices.dims[d], dy.dims[d], str_cat("dim ", d, " of indices and dy")));
  KILN_ASSIGN(Shape shape, shape_of_x(c, dy.dims));
  c.results = {make_type(dy.dtype, std::move(shape))};
  return {};
}

Status decompose_max(DecomposeContext &c) {
  Composer g(c);
  const ValueId dy = c.node.inputs[1];
  const TensorType type = c.type(dy);
  const Shape shape = c.node.results[0].dims;
  // Nothing is added in place of what came from nowhere.
  const ValueId at = c.node.inputs[0];
  const ValueId no_place =
      g("full", {}, {{"exact", str_cat(nowhere)}, {"dtype", DType::i64}, {"shape", AttrValue(Shape{})}});
  const ValueId there = g("ne", {at, no_place});
  const ValueId index = g("where", {there, at, g.number(at, 0)}), source = g("where", {there, dy, g.number(dy, 0)});
  return g.give({scattered(g, "scatter_add", type, shape, index, source)});
}

Status reference_max_backward(ReferenceContext &c) {
  const RefTensor &dy = *c.inputs[1];
  RefTensor &dx = c.results[0];
  const int64_t pooled = std::max<int64_t>(count_of(std::span(dy.shape).subspan(2)), 1);
  const int64_t plane = count_of(std::span(dx.shape).subspan(2));
  const ReadElements<int64_t> indices(*c.inputs[0]);
  const ReadElements<double> in(dy);
  std::vector<Wide> sums(static_cast<size_t>(dx.size()));
  for (int64_t k = 0; k < dy.size(); ++k) {
    const int64_t i = indices[static_cast<size_t>(k)];
    if (i == nowhere) continue;
    if (i < 0 || i >= plane) return out_of_range(i, plane);
    sums[static_cast<size_t>(k / pooled * plane + i)] += in[static_cast<size_t>(k)];
  }
  give_all(dx, sums);
  return {};
}

// ---- avg_pool_backward

Status infer_avg(InferContext &c) {
  const TensorType &dy = c.inputs[0];
  KILN_TRY(require_rank(c, 0, 2 + space_of(c.op)));
  KILN_ASSIGN(Shape shape, shape_of_x(c, dy.dims));
  KILN_ASSIGN(const Shape pooled, pooled_shape(c, shape));
  for (size_t d = 2; d < dy.rank(); ++d)
    KILN_TRY(c.require_equal(dy.dims[d], pooled[d], str_cat("dy dim ", d, " and ", windows_by(c.op))));
  c.results = {make_type(dy.dtype, std::move(shape))};
  return {};
}

// The windows that hold an element are those of the last few that begin at or before it.
Status lower_avg(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  const PoolWindow window(c.attrs);
  std::vector<Expr> index = c.axes();
  Expr divisor = 1;
  int valid = -1;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t kernel = window.kernel[d], stride = window.stride[d];
    Expr &at = index[2 + d];
    const Expr place = at + window.padding[d], part = c.reduce_axis((kernel + stride - 1) / stride);
    at = floor_div(place, stride) - part;
    valid = both(c.body, valid, inside(c.body, part * stride + mod(place, stride), kernel));
    valid = both(c.body, valid, inside(c.body, at, c.inputs[0].dims[2 + d]));
    divisor = divisor * counted<Expr>(window, d, at, c.result.dims[2 + d]);
  }
  const Term dy(c.body, c.load(0, index, valid));
  if (window.is_uniform()) return c.body.yield((dy * (1 / window.size())).value()), Status();
  const Term count = Term(c.body, c.body.index(std::move(divisor))).as(c.result.dtype);
  const Term part = dy / count;
  c.body.yield((valid < 0 ? part : select(Term(c.body, valid), part, 0)).value());
  return {};
}

// Adds each element of dy, divided, where `pooled_at(place, dims of space of x and of dy)` tells.
template <class PooledAt>
Status spread(ReferenceContext &c, PooledAt pooled_at) {
  const RefTensor &dy = *c.inputs[0];
  RefTensor &dx = c.results[0];
  const std::vector<int64_t> places(dy.shape.begin() + 2, dy.shape.end()), size(dx.shape.begin() + 2, dx.shape.end());
  const ReadElements<double> in(dy);
  std::vector<Wide> sums(static_cast<size_t>(dx.size()));
  for (int64_t k = 0; k < dy.size(); ++k) {
    const Pooled pooled = pooled_at(unflatten(k % count_of(places), places), size, places);
    for (const int64_t place : pooled.places)
      sums[static_cast<size_t>(k / count_of(places) * count_of(size) + place)] +=
          Wide(in[static_cast<size_t>(k)]) / static_cast<Wide>(pooled.divisor);
  }
  give_all(dx, sums);
  return {};
}

Status reference_avg(ReferenceContext &c) {
  const PoolWindow window(c.attrs);
  return spread(c, [&](const std::vector<int64_t> &at, const std::vector<int64_t> &size, const auto &) {
    Pooled pooled;
    for (size_t d = 0; d < at.size(); ++d) pooled.divisor *= counted(window, d, at[d], size[d]);
    for (int64_t tap = 0; tap < count_of(window.kernel); ++tap) {
      std::vector<int64_t> to = unflatten(tap, window.kernel);
      for (size_t d = 0; d < at.size(); ++d) to[d] += at[d] * window.stride[d] - window.padding[d];
      if (const int64_t place = place_in(to, size); place >= 0) pooled.places.push_back(place);
    }
    return pooled;
  });
}

// ---- adaptive_avg_pool_backward

Status infer_adaptive_avg(InferContext &c) {
  const TensorType &dy = c.inputs[0];
  KILN_TRY(require_rank(c, 0, 2 + space_of(c.op)));
  KILN_ASSIGN(Shape shape, shape_of_x(c, dy.dims));
  for (size_t d = 2; d < dy.rank(); ++d) {
    KILN_TRY(require_at_most(c, 1, shape[d], str_cat("1 <= x dim ", d, by_size(c.op))));
    KILN_TRY(require_at_most(c, 1, dy.dims[d], str_cat("at least one part along dy dim ", d)));
  }
  c.results = {make_type(dy.dtype, std::move(shape))};
  return {};
}

// The parts that hold an element are one, or two where parts overlap; more where there are more parts than elements.
Status lower_adaptive_avg(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  std::vector<Expr> index = c.axes();
  Expr divisor = 1;
  int valid = -1;
  for (size_t d = 2; d < index.size(); ++d) {
    const Expr &parts = c.inputs[0].dims[d], &size = c.result.dims[d];
    if (mod(size, parts).is(0)) {
      index[d] = floor_div(index[d], floor_div(size, parts)) + c.reduce_axis(1);
      divisor = divisor * floor_div(size, parts);
      continue;
    }
    const auto [first, last] = part_of(index[d], parts, size);
    index[d] = last - 1 - c.reduce_axis(ceil_div(parts, size) + 1);
    valid = both(c.body, valid, c.body.op(Core::ge, c.body.index(index[d]), c.body.index(first)));
    const auto [begin, end] = part_of(index[d], size, parts);
    divisor = divisor * (end - begin);
  }
  const Term dy(c.body, c.load(0, std::move(index), valid));
  const Term part = dy / Term(c.body, c.body.index(std::move(divisor))).as(c.result.dtype);
  c.body.yield((valid < 0 ? part : select(Term(c.body, valid), part, 0)).value());
  return {};
}

Status reference_adaptive_avg(ReferenceContext &c) { return spread(c, part_at); }

// ---- samples

AttrValue size_attr(const Shape &planes) { return AttrValue(Shape(planes.begin() + 2, planes.end())); }

void samples_max(SampleSink &out, size_t n) {
  const auto sample = [&](const char *name, const Shape &dy, const Shape &x,
                          std::map<std::string, int64_t> sizes = {}) {
    int64_t plane = 1;
    for (size_t d = 2; d < x.size(); ++d) plane *= x[d].is_integer() ? x[d].integer() : 1;
    out.push_back({.name = name,
                   .inputs = {i64(dy), f32(dy)},
                   .attrs = {{"size", size_attr(x)}},
                   .sizes = std::move(sizes),
                   .int_low = 0,
                   .int_high = plane});
  };
  sample("plain", planes(n, 3), planes(n, 4));
  sample("overlapping", planes(n, 4), planes(n, 2));
  Shape none = planes(n, 2), symbolic = planes(n, 2), wide = planes(n, 3);
  none[0] = 0;
  symbolic[0] = sym("n");
  symbolic[2] = sym("w");
  wide[0] = sym("n");
  wide[2] = sym("w") + 1;
  sample("no_planes", none, planes(n, 3));
  sample("symbolic", symbolic, wide, {{"n", 2}, {"w", 3}});
  if (n > 1) return;
  sample("from_padding", {1, 1, 3}, {1, 1, 2});
  out.back().given = {{0, i64_data({1, 1, 3}, {1, nowhere, 0})}, {1, f32_data({1, 1, 3}, {1.5f, INFINITY, 2})}};
}

void samples_avg(SampleSink &out, size_t n) {
  struct Case {
    const char *name;
    int64_t size, kernel, stride, padding;
    bool ceil_mode, counts_padding;
  };
  const Case cases[] = {
      {"plain", 4, 2, 2, 0, false, true},     {"leftover", 5, 2, 3, 0, false, true},
      {"padded", 4, 3, 1, 1, false, true},    {"of_what_is_there", 4, 3, 2, 1, false, false},
      {"rounded_up", 4, 3, 2, 1, true, true}, {"rounded_up_of_what_is_there", 5, 2, 2, 1, true, false}};
  const auto pooled = [&](const Case &each, const Shape &x) {
    Shape dy = x;
    for (size_t d = 2; d < x.size(); ++d) {
      const Dim rest = x[d] + 2 * each.padding - each.kernel;
      dy[d] = floor_div(rest, each.stride) + 1;
      if (each.ceil_mode) dy[d] = min(ceil_div(rest, each.stride), floor_div(x[d] + each.padding - 1, each.stride)) + 1;
    }
    return dy;
  };
  const auto sample = [&](const Case &each, Shape dy, const Shape &x, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(each.name, std::move(dy),
                            {{"size", size_attr(x)},
                             {"kernel", ops::each(n, each.kernel)},
                             {"stride", ops::each(n, each.stride)},
                             {"padding", ops::each(n, each.padding)},
                             {"ceil_mode", each.ceil_mode},
                             {"count_include_pad", each.counts_padding}},
                            std::move(sizes)));
  };
  for (const Case &each : cases) sample(each, pooled(each, planes(n, each.size)), planes(n, each.size));
  Shape none = planes(n, 4);
  none[0] = 0;
  sample({"no_planes", 4, 2, 2, 0, false, true}, pooled(cases[0], none), none);
  const Case symbolic = {"symbolic", 4, 3, 2, 1, true, false};
  Shape x = planes(n, 4), dy = pooled(symbolic, x);
  x[0] = dy[0] = sym("n");
  dy[2] = sym("w");
  x[2] = 2 * sym("w") - 1;
  sample(symbolic, dy, x, {{"n", 2}, {"w", 4}});
}

void samples_adaptive_avg(SampleSink &out, size_t n) {
  const auto sample = [&](const char *name, const Shape &dy, const Shape &x,
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, dy, {{"size", size_attr(x)}}, std::move(sizes)));
  };
  sample("uneven", planes(n, 3), planes(n, 5));
  sample("even", planes(n, 1), Shape(2 + n, 4));
  sample("to_more", planes(n, 3), planes(n, 2));
  Shape none = planes(n, 2), symbolic = planes(n, 2);
  none[0] = 0;
  sample("no_planes", none, planes(n, 3));
  symbolic[0] = sym("n");
  Shape wide = planes(n, 3);
  wide[2] = sym("w") + 1;
  sample("symbolic", symbolic, wide, {{"n", 2}, {"w", 4}});
  symbolic[2] = sym("w");
  sample("symbolic_parts", symbolic, planes(n, 3), {{"n", 1}, {"w", 4}});
  if (n > 1) return;
  sample("edges", {1, 1, 3}, {1, 1, 7});
  out.back().given = {{0, f32_data({1, 1, 3}, {INFINITY, 1, NAN})}};
}

// ---- records

AttrDef size_of_x() { return list("size", "of x's dims of space", AttrKind::dim); }

// Of one argument, dy.
Op backward_record(std::string_view name, std::string_view doc, size_t n, std::vector<AttrDef> attrs,
                   Status (*infer)(InferContext &), OpMeaning meaning) {
  Op op = pool_record(name, doc, float_types, n, std::move(attrs), infer, meaning);
  op.args[0].name = "dy";
  op.result_names = {"dx"};
  return op;
}

template <size_t n>
Op max_pool_backward(std::string_view name, bool is_adaptive = false) {
  Op op = backward_record(
      name,
      is_adaptive ? "The gradient of an adaptive_max_pool's x, by the places that adaptive_max_pool_with_indices "
                    "gives: of equal elements the first gets it."
                  : "The gradient of a max_pool's x, by the places that max_pool_with_indices gives.",
      n, {size_of_x()}, infer_max,
      {.decompose = decompose_max,
       .reference = reference_max_backward,
       .gradient = through_decomposition(),
       .samples = [](SampleSink &out) { samples_max(out, n); }});
  op.args.insert(op.args.begin(), {"indices", "the pool's, of dy's shape; the largest i64: nowhere", dtypes(DType::i64),
                                   Arity::one, /*same_dtype=*/false});
  return op;
}
template <size_t n>
Op avg_pool_backward(std::string_view name) {
  return backward_record(
      name, "The gradient of an avg_pool's x.", n, pool_attrs(n, {pool_counts_padding(), size_of_x()}), infer_avg,
      {.lower = lower_avg, .reference = reference_avg, .gradient = by_rule("dy"), .samples = [](SampleSink &out) {
         samples_avg(out, n);
       }});
}
template <size_t n>
Op adaptive_avg_pool_backward(std::string_view name) {
  return backward_record(name, "The gradient of an adaptive_avg_pool's x.", n, {size_of_x()}, infer_adaptive_avg,
                         {.lower = lower_adaptive_avg,
                          .reference = reference_adaptive_avg,
                          .gradient = by_rule("dy"),
                          .samples = [](SampleSink &out) { samples_adaptive_avg(out, n); }});
}

const Op pool_backward_records[] = {
    max_pool_backward<1>("max_pool1d_backward"),
    max_pool_backward<2>("max_pool2d_backward"),
    max_pool_backward<3>("max_pool3d_backward"),
    avg_pool_backward<1>("avg_pool1d_backward"),
    avg_pool_backward<2>("avg_pool2d_backward"),
    avg_pool_backward<3>("avg_pool3d_backward"),
    adaptive_avg_pool_backward<1>("adaptive_avg_pool1d_backward"),
    adaptive_avg_pool_backward<2>("adaptive_avg_pool2d_backward"),
    adaptive_avg_pool_backward<3>("adaptive_avg_pool3d_backward"),
    max_pool_backward<1>("adaptive_max_pool1d_backward", /*is_adaptive=*/true),
    max_pool_backward<2>("adaptive_max_pool2d_backward", /*is_adaptive=*/true),
    max_pool_backward<3>("adaptive_max_pool3d_backward", /*is_adaptive=*/true),
};

}  // namespace

std::span<const Op> pool_backward_ops() { return pool_backward_records; }

}  // namespace kiln::ops
