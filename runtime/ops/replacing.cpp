// Ops that put something in place of a part of their operand.
#include "runtime/ops/composer.h"
#include "runtime/ops/elementwise.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// ---- masked_fill

Status infer_masked_fill(InferContext &c) {
  const TensorType &x = c.inputs[0], &mask = c.inputs[1];
  if (c.inputs[2].rank() != 0) return c.fail("value is ", c.inputs[2].text(), ", expected a scalar");
  if (mask.rank() > x.rank()) return c.fail("mask is ", mask.text(), ", x is ", x.text(), "; expected no more dims");
  for (size_t d = 0; d < mask.rank(); ++d)
    if (!mask.dims[d].is(1))
      KILN_TRY(c.require_equal(mask.dims[d], x.dims[x.rank() - mask.rank() + d],
                               str_cat("mask dim ", d, " and its dim of x")));
  return infer_same(c);
}
Status decompose_masked_fill(DecomposeContext &c) {
  Composer g(c);
  return g.give({g("where", {c.node.inputs[1], c.node.inputs[2], c.node.inputs[0]})});
}
Status reference_masked_fill(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &mask = *c.inputs[1];
  const ReadElements<int64_t> masked(mask);
  return dispatch(x, [&](auto zero) {
    const ReadElements<decltype(zero)> in(x);
    const auto value = ReadElements<decltype(zero)>(*c.inputs[2])[0];
    const WriteElements<decltype(zero)> out(c.results[0]);
    return walk_in_ranges<1>(c, x.shape, {broadcast_strides(mask.shape, x.shape)}, [&](size_t k, auto at) {
      out.set(k, masked[static_cast<size_t>(at[0])] ? value : in[k]);
    });
  });
}

// ---- slice_scatter, select_scatter

Status infer_slice_scatter(InferContext &c) {
  const TensorType &x = c.inputs[0], &part = c.inputs[1];
  KILN_TRY(require_rank(c, 1, x.rank()));
  KILN_ASSIGN(const Slice slice, checked_slice(c, x));
  for (size_t d = 0; d < x.rank(); ++d)
    KILN_TRY(c.require_equal(
        part.dims[d], d == slice.dim ? slice.count : x.dims[d],
        str_cat("part dim ", d, " and ", d == slice.dim ? "the slice's by start, end and step" : "x's")));
  return infer_same(c);
}

// The points of the part alone: what is around it stays.
void lower_part(LowerContext &c, size_t dim, const Expr &start, int64_t step) {
  kernel::Scatter &scatter = c.compute.scatter.emplace();
  kernel::BodyBuilder begin(scatter.begin);
  begin.yield(begin.load(0, c.inputs[0].dtype, c.axes()));
  std::vector<Expr> index = c.axes();
  index[dim] = c.reduce_axis(c.inputs[1].dims[dim]);
  c.body.yield(c.load(1, index));
  index[dim] = start + index[dim] * step;
  if (const int valid = inside(c.body, index[dim], c.inputs[0].dims[dim]); valid >= 0) {
    c.body.yield(valid);
    scatter.valid = 1;
  }
  scatter.index = std::move(index);
}

Status lower_slice_scatter(LowerContext &c) {
  const size_t dim = dim_of(c, c.result.rank());
  const Expr &size = c.inputs[0].dims[dim];
  const Expr start = from_the_end(c.attr("start").dim(), size);
  const int64_t step = slice_step(c.attrs);
  if (c.replaces) {
    lower_part(c, dim, start, step);
    return {};
  }
  const Expr past = step > 0 ? c.axis(dim) - start : start - c.axis(dim), apart = std::abs(step);
  kernel::BodyBuilder &body = c.body;
  std::vector<Expr> index = c.axes();
  index[dim] = floor_div(past, apart);
  int valid = inside(body, index[dim], c.inputs[1].dims[dim]);
  if (!apart.is(1)) valid = both(body, valid, body.op(Core::eq, body.index(mod(past, apart)), body.index(0)));
  const int part = c.load(1, std::move(index), valid);
  body.yield(valid < 0 ? part : body.op(Core::select, valid, part, c.load(0)));
  return {};
}

// x, with the part where `to` walks.
Status with_part(ReferenceContext &c, const Walk &to) {
  const RefTensor &part = *c.inputs[1];
  KILN_TRY(copy_broadcast(c, *c.inputs[0]));
  return copy_walked(c, part.shape, part, {0, dense_strides(part.shape)}, c.results[0], to);
}

Status reference_slice_scatter(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const size_t dim = dim_of(c, x.shape.size());
  const int64_t start = from_the_end(c.attr("start").dim(), x.shape[dim]).integer();
  std::vector<int64_t> strides = dense_strides(x.shape);
  const int64_t begin = start * strides[dim];
  if (c.inputs[1]->shape[dim] > 1) strides[dim] *= slice_step(c.attrs);
  return with_part(c, {begin, strides});
}

Status infer_select_scatter(InferContext &c) {
  const TensorType &x = c.inputs[0], &part = c.inputs[1];
  KILN_ASSIGN(const int64_t axis, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  const auto dim = static_cast<size_t>(axis);
  KILN_TRY(require_rank(c, 1, x.rank() - 1));
  const Dim at = from_the_end(c.attr("index").dim(), x.dims[dim]);
  KILN_TRY(require_at_most(c, 0, at, str_cat("0 <= index, in dim ", dim)));
  KILN_TRY(require_at_most(c, at + 1, x.dims[dim], str_cat("index + 1 <= size, in dim ", dim)));
  for (size_t d = 0; d + 1 < x.rank(); ++d)
    KILN_TRY(c.require_equal(part.dims[d], x.dims[d < dim ? d : d + 1], str_cat("part dim ", d, " and its dim of x")));
  return infer_same(c);
}
Status decompose_select_scatter(DecomposeContext &c) {
  Composer g(c);
  const TensorType x = c.type(c.node.inputs[0]);
  const auto dim = static_cast<int64_t>(dim_of(c, x.rank()));
  const Dim at = from_the_end(c.attr("index").dim(), x.dims[static_cast<size_t>(dim)]);
  const ValueId part = g("unsqueeze", {c.node.inputs[1]}, {{"dims", ints({dim})}});
  return g.give({g("slice_scatter", {c.node.inputs[0], part}, {{"dim", dim}, {"start", at}, {"end", at + 1}})});
}
Status reference_select_scatter(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const size_t dim = dim_of(c, x.shape.size());
  std::vector<int64_t> strides = dense_strides(x.shape);
  const int64_t begin = from_the_end(c.attr("index").dim(), x.shape[dim]).integer() * strides[dim];
  strides.erase(strides.begin() + static_cast<ptrdiff_t>(dim));
  return with_part(c, {begin, strides});
}

// ---- samples

void samples_masked_fill(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back({.name = "vector", .inputs = {f32({257}), boolean({257}), f32({})}});
  out.push_back({.name = "rows", .inputs = {f32({7, 33}), boolean({7, 1}), f32({})}});
  out.push_back({.name = "fewer_dims", .inputs = {f32({3, 5, 7}), boolean({7}), f32({})}});
  out.push_back({.name = "scalar_mask", .inputs = {f32({5, 3}), boolean({}), f32({})}});
  out.push_back({.name = "integers", .inputs = {i64({33}), boolean({33}), i64({})}});
  out.push_back({.name = "empty", .inputs = {f32({0, 3}), boolean({3}), f32({})}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, 3}), boolean({n, 1}), f32({})}, .sizes = {{"n", 9}}});
}
void replacing_sample(SampleSink &out, const char *name, Shape x, Shape part, AttrMap attrs,
                      std::map<std::string, int64_t> sizes = {}) {
  out.push_back({.name = name,
                 .inputs = {f32(std::move(x)), f32(std::move(part))},
                 .attrs = std::move(attrs),
                 .sizes = std::move(sizes)});
}
void samples_slice_scatter(SampleSink &out) {
  const Dim n = sym("n");
  replacing_sample(out, "head", {17, 5}, {7, 5}, {{"dim", 0}, {"start", Dim(0)}, {"end", Dim(7)}});
  replacing_sample(out, "tail", {5, 33}, {5, 17}, {{"dim", -1}, {"start", Dim(16)}, {"end", Dim(33)}});
  replacing_sample(out, "steps", {3, 65}, {3, 21}, {{"dim", 1}, {"start", Dim(1)}, {"end", Dim(64)}, {"step", 3}});
  replacing_sample(out, "from_the_end", {17}, {4}, {{"dim", 0}, {"start", Dim(-5)}, {"end", Dim(-1)}});
  replacing_sample(out, "nothing", {7, 3}, {0, 3}, {{"dim", 0}, {"start", Dim(4)}, {"end", Dim(4)}});
  replacing_sample(out, "whole", {7, 3}, {7, 3}, {{"dim", 1}, {"start", Dim(0)}, {"end", Dim(3)}});
  replacing_sample(out, "symbolic", {n, 3}, {n - 1, 3}, {{"dim", 0}, {"start", Dim(1)}, {"end", n}}, {{"n", 9}});
  replacing_sample(out, "reversed", {3, 9}, {3, 9}, {{"dim", 1}, {"start", Dim(-1)}, {"end", Dim(-10)}, {"step", -1}});
  replacing_sample(out, "reversed_steps", {n}, {floor_div(n, 2)},
                   {{"dim", 0}, {"start", n - 2}, {"end", -1 - n}, {"step", -2}}, {{"n", 9}});
}
void samples_select_scatter(SampleSink &out) {
  const Dim n = sym("n");
  replacing_sample(out, "row", {17, 5}, {5}, {{"dim", 0}, {"index", Dim(3)}});
  replacing_sample(out, "column", {5, 33}, {5}, {{"dim", -1}, {"index", Dim(-1)}});
  replacing_sample(out, "middle", {2, 3, 5}, {2, 5}, {{"dim", 1}, {"index", Dim(0)}});
  replacing_sample(out, "one", {1}, {}, {{"dim", 0}, {"index", Dim(0)}});
  replacing_sample(out, "symbolic", {n, 3}, {3}, {{"dim", 0}, {"index", n - 1}}, {{"n", 9}});
}

// ---- records

const Op replacing_records[] = {
    {{.name = "masked_fill",
      .doc = "value where the mask holds, else x.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type},
               {"mask", "broadcasts to x", dtypes(DType::boolean), Arity::one, /*same_dtype=*/false},
               {"value", "a scalar", any_type}},
      .result_names = {"y"},
      .infer = infer_masked_fill},
     {.decompose = decompose_masked_fill,
      .reference = reference_masked_fill,
      .gradient = through_decomposition(),
      .samples = samples_masked_fill}},
    {{.name = "slice_scatter",
      .doc = "x with part in place of its slice; literals below 0 count from the end.",
      .flags = op_flags::moves | op_flags::replaces,
      .args = {{"x", "any shape", any_type}, {"part", "of the slice's shape", any_type}},
      .result_names = {"y"},
      .attrs = {dim_attr("the dim that is cut"),
                {.name = "start", .doc = "first index", .kind = AttrKind::dim, .fallback = Dim(0)},
                {.name = "end", .doc = "index after the last", .kind = AttrKind::dim, .required = true},
                {.name = "step", .doc = "not 0", .kind = AttrKind::i64, .fallback = 1}},
      .infer = infer_slice_scatter},
     {.lower = lower_slice_scatter,
      .reference = reference_slice_scatter,
      .gradient = by_rule("x, part"),
      .samples = samples_slice_scatter}},
    {{.name = "select_scatter",
      .doc = "x with part in place of what stands at one index of a dim; a literal below 0 counts from the end.",
      .flags = op_flags::moves,
      .args = {{"x", "at least one dim", any_type}, {"part", "x's shape without the dim", any_type}},
      .result_names = {"y"},
      .attrs = {dim_attr("of x"), {.name = "index", .doc = "in the dim", .kind = AttrKind::dim, .required = true}},
      .infer = infer_select_scatter},
     {.decompose = decompose_select_scatter,
      .reference = reference_select_scatter,
      .gradient = through_decomposition(),
      .samples = samples_select_scatter}},
};

}  // namespace

std::span<const Op> replacing_ops() { return replacing_records; }

}  // namespace kiln::ops
