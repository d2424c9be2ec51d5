// Pooling of parts that divide x: as many as the result has elements, or one. And what puts pooled elements back.
#include "runtime/ops/composer.h"
#include "runtime/ops/formula.h"
#include "runtime/ops/pooling.h"

namespace kiln::ops {
namespace {

using kernel::Core;

Status infer_adaptive(InferContext &c) {
  const size_t n = space_of(c.op);
  KILN_TRY(require_rank(c, 0, 2 + n));
  KILN_TRY(require_integers(c, "size", n, 1));
  Shape shape = c.inputs[0].dims;
  for (size_t d = 0; d < n; ++d) {
    KILN_TRY(require_at_most(c, 1, shape[2 + d], str_cat("at least one element along x dim ", 2 + d)));
    shape[2 + d] = c.attr("size").i64_list()[d];
  }
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}

Status infer_adaptive_with_indices(InferContext &c) {
  KILN_TRY(infer_adaptive(c));
  c.results.push_back(make_type(DType::i64, c.results[0].dims));
  return {};
}

enum class Adaptive : uint8_t { mean, largest, largest_and_index };

template <Adaptive what>
Status lower_adaptive(LowerContext &c) {
  c.compute.carriers = what == Adaptive::largest_and_index
                           ? kernel::argmax_carriers(c.result.dtype)
                           : kernel::carriers_of(what == Adaptive::mean ? Core::add : Core::max, c.result.dtype);
  const std::vector<int64_t> &parts = c.attr("size").i64_list();
  std::vector<Expr> index = c.axes();
  int valid = -1;
  Expr count = 1, place = 0;
  for (size_t d = 0; d < parts.size(); ++d) {
    const Expr &size = c.inputs[0].dims[2 + d];
    const auto [begin, end] = part_of(c.axis(2 + d), size, Expr(parts[d]));
    const bool is_even = mod(size, parts[d]).is(0);
    index[2 + d] = begin + c.reduce_axis(is_even ? floor_div(size, parts[d]) : ceil_div(size, parts[d]) + 1);
    count = count * (end - begin);
    place = place * size + index[2 + d];
    if (!is_even) valid = both(c.body, valid, c.body.op(Core::lt, c.body.index(index[2 + d]), c.body.index(end)));
  }
  const double fill = what == Adaptive::mean ? 0 : -infinity;
  const Term x(c.body, c.load(0, std::move(index), valid, kernel::immediate_of(c.result.dtype, fill)));
  if (what != Adaptive::mean) {
    c.body.yield(x.value());
    if (what == Adaptive::largest) return {};
    const int at = c.body.index(std::move(place));
    c.body.yield(valid < 0 ? at : c.body.op(Core::select, valid, at, c.body.index(i64_max)));
    return {};
  }
  c.body.yield((x / Term(c.body, c.body.index(std::move(count))).as(c.result.dtype)).value());
  return {};
}

// ---- all of x

Status infer_global(InferContext &c) {
  Shape shape = c.inputs[0].dims;
  if (shape.size() < 3) return c.fail("x is ", c.inputs[0].text(), ", expected [N, C, ...], with a dim of space");
  for (size_t d = 2; d < shape.size(); ++d) {
    KILN_TRY(require_at_most(c, 1, shape[d], str_cat("at least one element along x dim ", d)));
    shape[d] = 1;
  }
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}

template <bool is_mean>
Status decompose_global(DecomposeContext &c) {
  Composer g(c);
  std::vector<int64_t> space;
  for (size_t d = 2; d < c.type(c.node.inputs[0]).rank(); ++d) space.push_back(static_cast<int64_t>(d));
  return g.give({g(is_mean ? "mean" : "max", c.node.inputs, {{"dims", ints(std::move(space))}, {"keepdim", true}})});
}

// ---- max_unpool: x's elements where a pool found them

Status infer_unpool(InferContext &c) {
  const TensorType &x = c.inputs[0], &indices = c.inputs[1];
  const size_t n = space_of(c.op);
  KILN_TRY(require_rank(c, 0, 2 + n));
  KILN_TRY(require_rank(c, 1, 2 + n));
  for (size_t d = 0; d < 2 + n; ++d)
    KILN_TRY(c.require_equal(x.dims[d], indices.dims[d], str_cat("dim ", d, " of x and indices")));
  const Shape &size = c.attr("size").dim_list();
  if (size.size() != n) return c.fail("size has ", size.size(), " values, expected ", n);
  KILN_TRY(require_shape(c, size, "size"));
  c.results = {make_type(x.dtype, {x.dims[0], x.dims[1]})};
  c.results[0].dims.insert(c.results[0].dims.end(), size.begin(), size.end());
  return {};
}

Status decompose_unpool(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const TensorType type = c.type(x);
  const Shape &size = c.attr("size").dim_list();
  Shape shape = {type.dims[0], type.dims[1]};
  shape.insert(shape.end(), size.begin(), size.end());
  return g.give({scattered(g, "scatter", type, shape, c.node.inputs[1], x)});
}

Status reference_unpool(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  const int64_t pooled = std::max<int64_t>(count_of(std::span(x.shape).subspan(2)), 1);
  const int64_t plane = count_of(std::span(y.shape).subspan(2));
  const ReadElements<int64_t> indices(*c.inputs[1]);
  KILN_TRY(require_in_range(c, *c.inputs[1], plane));
  return dispatch(y, [&](auto zero) -> Status {
    const ReadElements<decltype(zero)> in(x);
    const WriteElements<decltype(zero)> out(y);
    for (int64_t k = 0; k < x.size(); ++k)  // in order: of those for one place the last stays
      out.set(static_cast<size_t>(k / pooled * plane + indices[static_cast<size_t>(k)]), in[static_cast<size_t>(k)]);
    return {};
  });
}

// ---- reference kernels

Pooled part_of_x(const ReferenceContext &c, const std::vector<int64_t> &at) {
  const std::vector<int64_t> &x = c.inputs[0]->shape, &y = c.results[0].shape;
  return part_at(at, {x.begin() + 2, x.end()}, {y.begin() + 2, y.end()});
}
template <bool is_mean>
Status reference_parts(ReferenceContext &c) {
  return reference_of_pools(c, is_mean ? Pooling::mean : Pooling::largest, part_of_x);
}

// ---- samples

void samples_adaptive(SampleSink &out, size_t n) {
  out.push_back(sample_of("uneven", planes(n, 7), {{"size", each(n, 3)}}, {}));
  out.push_back(sample_of("even", Shape(2 + n, 6), {{"size", each(n, 3)}}, {}));
  out.push_back(sample_of("to_one", planes(n, 5), {{"size", each(n, 1)}}, {}));
  out.push_back(sample_of("to_more", planes(n, 3), {{"size", each(n, 5)}}, {}));
  out.push_back(symbolic_sample(n, {{"size", each(n, 2)}}));
}

void samples_adaptive_indices(SampleSink &out, size_t n) {
  out.push_back(sample_of("uneven", planes(n, 5), {{"size", each(n, 3)}}, {}));
  out.push_back(sample_of("to_more", planes(n, 2), {{"size", each(n, 3)}}, {}));
  out.push_back(sample_of("ties", Shape(2 + n, 4), {{"size", each(n, 2)}}, {}));
  out.back().inputs[0].dtype = DType::i64;
  out.back().int_low = 0;
  out.back().int_high = 2;
  out.push_back(symbolic_sample(n, {{"size", each(n, 2)}}));
  if (n > 1) return;
  out.push_back(sample_of("edges", {1, 1, 8}, {{"size", ints({3})}}, {}));
  out.back().given = {{0, f32_data({1, 1, 8}, {-INFINITY, -INFINITY, -INFINITY, 2.f, NAN, 1.f, -0.f, 0.f})}};
}

void samples_global(SampleSink &out) {
  out.push_back(sample_of("image", {2, 3, 5, 7}, {}, {}));
  out.push_back(sample_of("sequence", {2, 3, 65}, {}, {}));
  out.push_back(sample_of("volume", {1, 2, 3, 4, 5}, {}, {}));
  out.push_back(sample_of("one", {1, 3, 1, 1}, {}, {}));
  out.push_back(sample_of("no_images", {0, 3, 5}, {}, {}));
  out.push_back(sample_of("symbolic", {sym("n"), 2, sym("h"), 6}, {}, {{"n", 2}, {"h", 5}}));
}

void samples_unpool(SampleSink &out, size_t n) {
  const auto sample = [&](const char *name, Shape x, Shape size, std::map<std::string, int64_t> sizes = {}) {
    Dim most = 1;
    for (const Dim &dim : size) most *= dim.is_integer() ? dim : Dim(2);
    out.push_back({.name = name,
                   .inputs = {f32(x), i64(x)},
                   .attrs = {{"size", AttrValue(std::move(size))}},
                   .sizes = std::move(sizes),
                   .int_low = 0,
                   .int_high = most.integer()});
  };
  sample("one", Shape(2 + n, 1), Shape(n, 3));
  sample("planes", planes(n, 2), Shape(n, 5));
  sample(
      "no_planes",
      [&] {
        Shape none(2 + n, 2);
        none[0] = 0;
        return none;
      }(),
      Shape(n, 4));
  Shape symbolic(2 + n, 2);
  symbolic[0] = sym("n");
  symbolic[2] = sym("w");
  Shape size(n, 4);
  size[0] = sym("w") * 2;
  sample("symbolic", std::move(symbolic), std::move(size), {{"n", 2}, {"w", 3}});
}

// ---- records

template <size_t n>
Op unpool(std::string_view name) {
  Op op = pool_record(name,
                      "x's elements at their indices in the result's dims of space, counted as one, and zeros: what "
                      "max_pool with indices found at its places. Of two for one place the last stays.",
                      any_type, n, {list("size", "of the result's dims of space", AttrKind::dim)}, infer_unpool,
                      {.decompose = decompose_unpool,
                       .reference = reference_unpool,
                       .gradient = through_decomposition(),
                       .samples = [](SampleSink &out) { samples_unpool(out, n); }});
  op.args.push_back({"indices", "of x's shape, 0 <= index < the product of size", dtypes(DType::i64), Arity::one,
                     /*same_dtype=*/false});
  op.flags = op_flags::moves;
  return op;
}

template <size_t n, bool is_mean>
Op adaptive(std::string_view name) {
  constexpr Adaptive what = is_mean ? Adaptive::mean : Adaptive::largest;
  return pool_record(
      name,
      is_mean ? "The means of as many parts as `size` tells, which overlap where they do not divide x."
              : "The largest elements of as many parts as `size` tells, which overlap where they do not divide x.",
      is_mean ? float_types : numeric_types, n, {list("size", "of the result")}, infer_adaptive,
      {.lower = lower_adaptive<what>,
       .reference = reference_parts<is_mean>,
       .gradient = by_rule("x", is_mean ? Ties::none : Ties::first),
       .samples = [](SampleSink &out) { samples_adaptive(out, n); }});
}
template <size_t n>
Op adaptive_max_with_indices(std::string_view name) {
  Op op =
      pool_record(name,
                  "The largest element of each of an adaptive_max_pool's parts, and its index in x's dims of space, "
                  "which are counted as one: that of the first of equals or of NaN (PyTorch's: of the last NaN).",
                  numeric_types, n, {list("size", "of the result")}, infer_adaptive_with_indices,
                  {.lower = lower_adaptive<Adaptive::largest_and_index>,
                   .reference = reference_parts<false>,
                   .gradient = by_rule("x", Ties::first),
                   .samples = [](SampleSink &out) { samples_adaptive_indices(out, n); }});
  op.result_names = {"y", "indices"};
  return op;
}
template <bool is_mean>
Op global(std::string_view name) {
  return pool_record(name,
                     is_mean ? "The mean of each channel's dims of space, which become 1."
                             : "The largest element of each channel's dims of space, which become 1; NaN if one is.",
                     is_mean ? float_types : numeric_types, 0, {}, infer_global,
                     {.decompose = decompose_global<is_mean>,
                      .reference = reference_parts<is_mean>,
                      .gradient = through_decomposition(),
                      .samples = samples_global});
}

const Op adaptive_pool_records[] = {
    adaptive<1, true>("adaptive_avg_pool1d"),
    adaptive<2, true>("adaptive_avg_pool2d"),
    adaptive<3, true>("adaptive_avg_pool3d"),
    adaptive<1, false>("adaptive_max_pool1d"),
    adaptive<2, false>("adaptive_max_pool2d"),
    adaptive<3, false>("adaptive_max_pool3d"),
    adaptive_max_with_indices<1>("adaptive_max_pool1d_with_indices"),
    adaptive_max_with_indices<2>("adaptive_max_pool2d_with_indices"),
    adaptive_max_with_indices<3>("adaptive_max_pool3d_with_indices"),
    global<true>("global_avg_pool"),
    global<false>("global_max_pool"),
    unpool<1>("max_unpool1d"),
    unpool<2>("max_unpool2d"),
    unpool<3>("max_unpool3d"),
};

}  // namespace

std::span<const Op> adaptive_pool_ops() { return adaptive_pool_records; }

}  // namespace kiln::ops
