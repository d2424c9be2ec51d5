// Pooling: one number for each window of a size that attributes tell, in a sequence, an image or a volume.
#include <cmath>

#include "runtime/ops/composer.h"
#include "runtime/ops/formula.h"
#include "runtime/ops/pooling.h"

namespace kiln::ops {
namespace {

using kernel::Core;

Status infer_pool(InferContext &c) {
  KILN_TRY(require_rank(c, 0, 2 + space_of(c.op)));
  KILN_ASSIGN(Shape shape, pooled_shape(c, c.inputs[0].dims));
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}
Status infer_pool_with_indices(InferContext &c) {
  KILN_TRY(infer_pool(c));
  c.results.push_back(make_type(DType::i64, c.results[0].dims));
  return {};
}
Status infer_lp_pool(InferContext &c) {
  if (const double p = c.attr("p").f64(); !(p > 0)) return c.fail("p is ", p, ", expected more than 0");
  return infer_pool(c);
}

// The element of the window at new reduce axes; `fill` in the padding. Its index in x, and whether there is one, on
// request.
int load_window(LowerContext &c, double fill, std::vector<Expr> *at_index = nullptr, int *is_valid = nullptr) {
  const PoolWindow window(c.attrs);
  std::vector<Expr> index = c.axes();
  int valid = -1;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    Expr &at = index[2 + d];
    at = at * window.stride[d] + c.reduce_axis(window.kernel[d]) * window.dilation[d] - window.padding[d];
    if (window.padding[d] > 0 || window.ceil_mode)
      valid = both(c.body, valid, inside(c.body, at, c.inputs[0].dims[2 + d]));
  }
  if (at_index) *at_index = index;
  if (is_valid) *is_valid = valid;
  return c.load(0, std::move(index), valid, kernel::immediate_of(c.result.dtype, fill));
}

Status lower_sum_pool(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  c.body.yield(load_window(c, 0));
  return {};
}

// Padding comes after all elements of x.
Status lower_max_pool_with_indices(LowerContext &c) {
  c.compute.carriers = kernel::argmax_carriers(c.result.dtype);
  std::vector<Expr> index;
  int valid = -1;
  const int x = load_window(c, -infinity, &index, &valid);
  Expr place = 0;
  for (size_t d = 2; d < index.size(); ++d) place = place * c.inputs[0].dims[d] + index[d];
  const int at = c.body.index(std::move(place));
  c.body.yield(x);
  c.body.yield(valid < 0 ? at : c.body.op(Core::select, valid, at, c.body.index(i64_max)));
  return {};
}

// (sum |x|^p)^(1/p)
Status decompose_lp_pool(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const double p = c.attr("p").f64();
  AttrMap attrs = c.node.attrs;
  attrs.erase("p");
  const ValueId size = g("abs", {x});
  const auto pooled = [&](std::string_view pool, ValueId of) {
    return g(str_cat(pool, space_of(c.op), "d"), {of}, attrs);
  };
  if (p == infinity) return g.give({g("maximum", {pooled("max_pool", size), g.number(x, 0)})});
  if (p == 1) return g.give({pooled("sum_pool", size)});
  if (p == 2) return g.give({g("sqrt", {pooled("sum_pool", g("mul", {x, x}))})});
  return g.give({g("pow", {pooled("sum_pool", g("pow", {size, g.number(x, p)})), g.number(x, 1 / p)})});
}

Status lower_max_pool(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(Core::max, c.result.dtype);
  c.body.yield(load_window(c, -infinity));
  return {};
}

Status lower_avg_pool(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  const PoolWindow window(c.attrs);
  const Term x(c.body, load_window(c, 0));
  if (window.is_uniform()) return c.body.yield((x * (1 / window.size())).value()), Status();
  Expr count = 1;
  for (size_t d = 0; d < window.kernel.size(); ++d)
    count = count * counted(window, d, c.axis(2 + d), c.inputs[0].dims[2 + d]);
  c.body.yield((x / Term(c.body, c.body.index(std::move(count))).as(c.result.dtype)).value());
  return {};
}

// ---- reference kernels

Pooled pooled_at(const ReferenceContext &c, const std::vector<int64_t> &at) {
  const PoolWindow window(c.attrs);
  const std::vector<int64_t> size(c.inputs[0]->shape.begin() + 2, c.inputs[0]->shape.end());
  Pooled pooled;
  for (size_t d = 0; d < at.size(); ++d) pooled.divisor *= counted(window, d, at[d], size[d]);
  for (int64_t k = 0; k < count_of(window.kernel); ++k) {
    std::vector<int64_t> from = unflatten(k, window.kernel);
    for (size_t d = 0; d < at.size(); ++d)
      from[d] = at[d] * window.stride[d] + from[d] * window.dilation[d] - window.padding[d];
    if (const int64_t place = place_in(from, size); place >= 0) pooled.places.push_back(place);
  }
  return pooled;
}
template <Pooling pooling>
Status reference_pool(ReferenceContext &c) {
  return reference_of_pools(c, pooling, pooled_at);
}

// ---- samples

void samples_pool2d(SampleSink &out) {
  const Dim n = sym("n"), h = sym("h"), w = sym("w");
  auto sample = [&](const char *name, Shape x, std::vector<int64_t> kernel, std::vector<int64_t> stride,
                    std::vector<int64_t> padding, std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(x))},
                   .attrs = {{"kernel", ints(std::move(kernel))},
                             {"stride", ints(std::move(stride))},
                             {"padding", ints(std::move(padding))}},
                   .sizes = std::move(sizes)});
  };
  sample("halved", {2, 3, 8, 8}, {2, 2}, {}, {0, 0});
  sample("leftover", {1, 3, 7, 9}, {2, 2}, {}, {0, 0});
  sample("overlapping", {2, 5, 9, 17}, {3, 3}, {1, 2}, {1, 1});
  sample("wide", {1, 2, 6, 33}, {1, 5}, {1, 1}, {0, 2});
  sample("whole_image", {3, 17, 4, 4}, {4, 4}, {}, {0, 0});
  sample("one", {1, 1, 1, 1}, {1, 1}, {}, {0, 0});
  sample("no_images", {0, 3, 4, 4}, {2, 2}, {}, {0, 0});
  sample("symbolic", {n, 3, h, w}, {2, 2}, {2, 2}, {1, 1}, {{"n", 2}, {"h", 7}, {"w", 8}});
}

// With the attributes that rounding up brings in, and `more`.
void samples_rounded_up(SampleSink &out, Shape x, size_t n, const AttrMap &more) {
  const auto sample = [&](const char *name, int64_t kernel, int64_t stride, int64_t padding) {
    AttrMap attrs = more;
    attrs.insert_or_assign("kernel", ints(std::vector<int64_t>(n, kernel)));
    attrs.insert_or_assign("stride", ints(std::vector<int64_t>(n, stride)));
    attrs.insert_or_assign("padding", ints(std::vector<int64_t>(n, padding)));
    attrs.insert_or_assign("ceil_mode", true);
    out.push_back(sample_of(name, x, std::move(attrs), {}));
  };
  sample("rounded_up", 2, 2, 0);
  sample("rounded_up_with_padding", 3, 2, 1);
  sample("rounded_up_but_not_beyond", 2, 3, 1);
  if (n < 3) sample("rounded_up_to_one", 8, 3, 0);  // PyTorch's avg_pool3d refuses it
}

void samples_max_pool(SampleSink &out, size_t n) {
  if (n == 2) {
    samples_pool2d(out);
    out.push_back(
        {.name = "edges",
         .inputs = {f32({1, 1, 2, 4})},
         .attrs = {{"kernel", ints({2, 2})}},
         .given = {{0, f32_data({1, 1, 2, 4}, {-INFINITY, -INFINITY, 1.f, NAN, -INFINITY, -INFINITY, 2.f, 3.f})}}});
  }
  out.push_back(sample_of("plain", planes(n, 7), {{"kernel", each(n, 2)}}, {}));
  out.push_back(
      sample_of("padded", planes(n, 6), {{"kernel", each(n, 3)}, {"stride", each(n, 1)}, {"padding", each(n, 1)}}, {}));
  out.push_back(sample_of("dilated", planes(n, 9),
                          {{"kernel", each(n, 3)}, {"stride", each(n, 1)}, {"dilation", each(n, 2)}}, {}));
  samples_rounded_up(out, planes(n, 7), n, {});
  out.push_back(symbolic_sample(n, {{"kernel", each(n, 3)}, {"stride", each(n, 2)}, {"ceil_mode", true}}));
}

void samples_avg_pool(SampleSink &out, size_t n) {
  if (n == 2) samples_pool2d(out);
  out.push_back(symbolic_sample(n, {{"kernel", each(n, 3)}, {"stride", each(n, 2)}, {"ceil_mode", true}}));
  out.push_back(sample_of("plain", planes(n, 7), {{"kernel", each(n, 2)}}, {}));
  out.push_back(
      sample_of("padded", planes(n, 6), {{"kernel", each(n, 3)}, {"stride", each(n, 1)}, {"padding", each(n, 1)}}, {}));
  out.push_back(sample_of(
      "of_what_is_there", planes(n, 6),
      {{"kernel", each(n, 3)}, {"stride", each(n, 1)}, {"padding", each(n, 1)}, {"count_include_pad", false}}, {}));
  samples_rounded_up(out, planes(n, 7), n, {});
  const size_t counting = out.size();
  samples_rounded_up(out, planes(n, 7), n, {{"count_include_pad", false}});
  for (size_t k = counting; k < out.size(); ++k) out[k].name += "_of_what_is_there";
}

void samples_indices(SampleSink &out, size_t n) {
  const auto sample = [&](const char *name, int64_t size, AttrMap attrs) -> Sample & {
    attrs.insert_or_assign("kernel", each(n, 3));
    return out.emplace_back(sample_of(name, planes(n, size), std::move(attrs), {}));
  };
  sample("plain", 6, {});
  sample("padded", 5, {{"padding", each(n, 1)}, {"stride", each(n, 2)}});
  sample("dilated", 6, {{"dilation", each(n, 2)}, {"stride", each(n, 1)}});
  sample("rounded_up", 5, {{"ceil_mode", true}, {"stride", each(n, 2)}});
  Sample &ties = sample("ties", 4, {{"padding", each(n, 1)}, {"stride", each(n, 1)}});
  ties.inputs[0].dtype = DType::i64;
  ties.int_low = 0;
  ties.int_high = 2;
  out.push_back(sample_of("no_planes", Shape(2 + n, 0), {{"kernel", each(n, 1)}}, {}));
  out.back().inputs[0].dims.assign(2 + n, 3);
  out.back().inputs[0].dims[0] = 0;
  if (n == 1) {
    out.push_back({.name = "edges",
                   .inputs = {f32({1, 1, 8})},
                   .attrs = {{"kernel", ints({2})}, {"padding", ints({1})}},
                   .given = {{0, f32_data({1, 1, 8}, {-INFINITY, 1.f, NAN, 2.f, -INFINITY, -INFINITY, -0.f, 0.f})}}});
  }
  out.push_back(symbolic_sample(n, {{"kernel", each(n, 3)}, {"stride", each(n, 2)}, {"padding", each(n, 1)}}));
}

void samples_sum_pool(SampleSink &out, size_t n) {
  out.push_back(sample_of("plain", planes(n, 5), {{"kernel", each(n, 2)}}, {}));
  out.push_back(
      sample_of("padded", planes(n, 4), {{"kernel", each(n, 3)}, {"stride", each(n, 2)}, {"padding", each(n, 1)}}, {}));
  out.push_back(sample_of("dilated", planes(n, 5),
                          {{"kernel", each(n, 2)}, {"stride", each(n, 1)}, {"dilation", each(n, 3)}}, {}));
  out.push_back(sample_of("rounded_up", planes(n, 5), {{"kernel", each(n, 2)}, {"ceil_mode", true}}, {}));
  out.push_back(symbolic_sample(n, {{"kernel", each(n, 3)}, {"stride", each(n, 2)}, {"ceil_mode", true}}));
}

void samples_lp_pool(SampleSink &out, size_t n) {
  samples_sum_pool(out, n);
  for (const double p : {1.0, 3.0, 0.5, infinity})
    out.push_back(sample_of(str_cat("p_", p).c_str(), planes(n, 4), {{"kernel", each(n, 2)}, {"p", p}}, {}));
}

// ---- records

template <size_t n>
Op max_pool(std::string_view name) {
  return pool_record(name, "The largest element of each window, NaN if one is; padding is never the largest.",
                     numeric_types, n, pool_attrs(n, {pool_dilation()}), infer_pool,
                     {.lower = lower_max_pool,
                      .reference = reference_pool<Pooling::largest>,
                      .gradient = by_rule("x", Ties::first),
                      .samples = [](SampleSink &out) { samples_max_pool(out, n); }});
}
template <size_t n>
Op max_pool_with_indices(std::string_view name) {
  Op op = pool_record(
      name,
      "The largest element of each window, and its index in x's dims of space, which are counted as one: that of the "
      "first of equals or of NaN (PyTorch's: of the last NaN). The largest i64 where a window lies in padding.",
      numeric_types, n, pool_attrs(n, {pool_dilation()}), infer_pool_with_indices,
      {.lower = lower_max_pool_with_indices,
       .reference = reference_pool<Pooling::largest>,
       .gradient = by_rule("x", Ties::first),
       .samples = [](SampleSink &out) { samples_indices(out, n); }});
  op.result_names = {"y", "indices"};
  return op;
}
template <size_t n>
Op sum_pool(std::string_view name) {
  return pool_record(name, "The sum of each window.", numeric_types, n, pool_attrs(n, {pool_dilation()}), infer_pool,
                     {.lower = lower_sum_pool,
                      .reference = reference_pool<Pooling::sum>,
                      .gradient = by_rule("x"),
                      .samples = [](SampleSink &out) { samples_sum_pool(out, n); }});
}
template <size_t n>
Op lp_pool(std::string_view name) {
  return pool_record(name,
                     "sum(|x|^p)^(1/p) of each window, as ONNX has it. PyTorch's takes x^p, which has a sign, and with "
                     "ceil_mode weighs windows that are cut.",
                     float_types, n, pool_attrs(n, {pool_dilation(), number("p", "the exponent, more than 0", 2)}),
                     infer_lp_pool,
                     {.decompose = decompose_lp_pool,
                      .reference = reference_pool<Pooling::norm>,
                      .gradient = through_decomposition(),
                      .samples = [](SampleSink &out) { samples_lp_pool(out, n); }});
}
template <size_t n>
Op avg_pool(std::string_view name) {
  return pool_record(name, "The mean of each window; what is beyond the padding never counts.", float_types, n,
                     pool_attrs(n, {pool_counts_padding()}), infer_pool,
                     {.lower = lower_avg_pool,
                      .reference = reference_pool<Pooling::mean>,
                      .gradient = by_rule("x"),
                      .samples = [](SampleSink &out) { samples_avg_pool(out, n); }});
}

const Op pool_records[] = {
    max_pool<1>("max_pool1d"),
    max_pool<2>("max_pool2d"),
    max_pool<3>("max_pool3d"),
    max_pool_with_indices<1>("max_pool1d_with_indices"),
    max_pool_with_indices<2>("max_pool2d_with_indices"),
    max_pool_with_indices<3>("max_pool3d_with_indices"),
    avg_pool<1>("avg_pool1d"),
    avg_pool<2>("avg_pool2d"),
    avg_pool<3>("avg_pool3d"),
    sum_pool<1>("sum_pool1d"),
    sum_pool<2>("sum_pool2d"),
    sum_pool<3>("sum_pool3d"),
    lp_pool<1>("lp_pool1d"),
    lp_pool<2>("lp_pool2d"),
    lp_pool<3>("lp_pool3d"),
};

}  // namespace

std::span<const Op> pool_ops() { return pool_records; }

}  // namespace kiln::ops
