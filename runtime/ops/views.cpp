// Views: the same elements at other indices. Each is a map from the result's index to the operand's.
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

// ---- permute, expand, slice

Status infer_permute(InferContext &c) {
  const TensorType &x = c.inputs[0];
  const std::vector<int64_t> &dims = c.attr("dims").i64_list();
  if (dims.size() != x.rank()) return c.fail("dims names ", dims.size(), " dims of ", x.text(), ", expected all");
  KILN_TRY(distinct_dims(c, x.rank()).take_status());
  Shape shape;
  for (int64_t dim : dims) shape.push_back(x.dims[normal_axis(dim, x.rank())]);
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

Status view_permute(ViewContext &c) {
  const std::vector<int64_t> &dims = c.attr("dims").i64_list();
  c.operand_index.resize(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) c.operand_index[normal_axis(dims[d], dims.size())] = c.index[d];
  return {};
}

Status infer_expand(InferContext &c) {
  const TensorType &x = c.inputs[0];
  const Shape &shape = c.attr("shape").dim_list();
  KILN_TRY(require_shape(c, shape));
  if (shape.size() < x.rank()) return c.fail("shape ", text_of(shape), " has fewer dims than ", x.text());
  for (size_t d = 0; d < x.rank(); ++d) {
    const Dim &to = shape[shape.size() - x.rank() + d];
    if (!x.dims[d].is(1))
      KILN_TRY(c.require_equal(x.dims[d], to, str_cat("dim ", d, " of x, which is not 1, and of shape")));
  }
  c.results = {make_type(x.dtype, shape)};
  return {};
}

Status view_expand(ViewContext &c) {
  const size_t rank = c.operand.rank(), added = c.result.rank() - rank;
  c.operand_index.resize(rank);
  for (size_t d = 0; d < rank; ++d) c.operand_index[d] = c.operand.dims[d].is(1) ? Expr(0) : c.index[added + d];
  return {};
}

Status infer_slice(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(Slice slice, checked_slice(c, x));
  c.results = {make_type(x.dtype, x.dims)};
  c.results[0].dims[slice.dim] = std::move(slice.count);
  return {};
}

Status view_slice(ViewContext &c) {
  const size_t dim = dim_of(c, c.operand.rank());
  c.operand_index.assign(c.index.begin(), c.index.end());
  Expr &at = c.operand_index[dim];
  at = from_the_end(c.attr("start").dim(), c.operand.dims[dim]) + at * slice_step(c.attrs);
  return {};
}

// ---- unfold, diagonal

Status infer_unfold(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  const int64_t size = c.attr("size").i64(), step = slice_step(c.attrs);
  if (size < 0) return c.fail("size is ", size, ", expected at least 0");
  if (step < 1) return c.fail("step is ", c.attr("step").i64(), ", expected at least 1");
  Shape shape = x.dims;
  Dim &count = shape[static_cast<size_t>(dim)];
  KILN_TRY(require_at_most(c, size, count, str_cat("size <= x dim ", dim)));
  count = floor_div(count - size, step) + 1;
  shape.push_back(size);
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

Status view_unfold(ViewContext &c) {
  c.operand_index.assign(c.index.begin(), c.index.end() - 1);
  Expr &at = c.operand_index[dim_of(c, c.operand.rank())];
  at = at * slice_step(c.attrs) + c.index.back();
  return {};
}

// One beyond the corner of every array is cut, so that sums do not overflow: there is no diagonal there.
int64_t offset_of(const AttrMap &attrs) { return std::clamp(attrs.find("offset")->second.i64(), -farthest, farthest); }

Status infer_diagonal(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(const int64_t row, c.axis(c.attr("dim1").i64(), x.rank(), "dim1"));
  KILN_ASSIGN(const int64_t column, c.axis(c.attr("dim2").i64(), x.rank(), "dim2"));
  if (row == column) return c.fail("dim1 and dim2 are both dim ", row, ", expected two dims");
  const Dim offset = offset_of(c.attrs);
  const Dim length =
      min(x.dims[static_cast<size_t>(row)] + min(offset, 0), x.dims[static_cast<size_t>(column)] - max(offset, 0));
  Shape shape;
  for (size_t d = 0; d < x.rank(); ++d)
    if (d != static_cast<size_t>(row) && d != static_cast<size_t>(column)) shape.push_back(x.dims[d]);
  shape.push_back(max(length, 0));
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

Status view_diagonal(ViewContext &c) {
  const size_t rank = c.operand.rank();
  const size_t row = normal_axis(c.attr("dim1").i64(), rank), column = normal_axis(c.attr("dim2").i64(), rank);
  const int64_t offset = offset_of(c.attrs);
  for (size_t d = 0, at = 0; d < rank; ++d)
    c.operand_index.push_back(d == row      ? c.index.back() - Expr(std::min<int64_t>(offset, 0))
                              : d == column ? c.index.back() + Expr(std::max<int64_t>(offset, 0))
                                            : c.index[at++]);
  return {};
}

// ---- squeeze, unsqueeze

Status infer_squeeze(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(std::vector<bool> removed, distinct_dims(c, x.rank()));
  Shape shape;
  for (size_t d = 0; d < x.rank(); ++d) {
    if (!removed[d])
      shape.push_back(x.dims[d]);
    else
      KILN_TRY(c.require_equal(x.dims[d], 1, str_cat("x dim ", d, ", which dims names, and 1")));
  }
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

Status infer_unsqueeze(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(std::vector<bool> added, distinct_dims(c, x.rank() + c.attr("dims").i64_list().size()));
  Shape shape;
  for (size_t d = 0, at = 0; d < added.size(); ++d) shape.push_back(added[d] ? Dim(1) : x.dims[at++]);
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

Status view_squeeze(ViewContext &c) {
  const std::vector<bool> removed = named_dims(c.attr("dims").i64_list(), c.operand.rank());
  size_t at = 0;
  for (bool one : removed) c.operand_index.push_back(one ? Expr(0) : c.index[at++]);
  return {};
}

Status view_unsqueeze(ViewContext &c) {
  const std::vector<bool> added = named_dims(c.attr("dims").i64_list(), c.result.rank());
  for (size_t d = 0; d < added.size(); ++d)
    if (!added[d]) c.operand_index.push_back(c.index[d]);
  return {};
}

// ---- samples

void samples_permute(SampleSink &out) {
  auto sample = [&](const char *name, Shape from, std::vector<int64_t> dims,
                    std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(from))},
                   .attrs = {{"dims", ints(std::move(dims))}},
                   .sizes = std::move(sizes)});
  };
  sample("transpose", {17, 33}, {1, 0});
  sample("blocks", {3, 37, 50}, {0, 2, 1});
  sample("blocks_of_symbols", {sym("m"), sym("n")}, {1, 0}, {{"m", 45}, {"n", 70}});
  sample("rotate", {3, 5, 7}, {2, 0, 1});
  sample("heads", {sym("b"), sym("t"), 3, 5}, {0, 2, 1, 3}, {{"b", 2}, {"t", 7}});
  sample("negative_dims", {3, 5, 7}, {-1, 0, -2});
  sample("identity", {3, 5}, {0, 1});
  sample("scalar", {}, {});
  sample("empty", {0, 3}, {1, 0});
}

void samples_expand(SampleSink &out) {
  auto sample = [&](const char *name, Shape from, Shape to, std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(from))},
                   .attrs = {{"shape", AttrValue(std::move(to))}},
                   .sizes = std::move(sizes)});
  };
  sample("row", {1, 33}, {7, 33});
  sample("column", {7, 1}, {7, 33});
  sample("new_dims", {5}, {3, 2, 5});
  sample("scalar", {}, {3, 5});
  sample("to_nothing", {1, 3}, {0, 3});
  sample("same", {3, 5}, {3, 5});
  sample("symbolic", {sym("n"), 1}, {2, sym("n"), 2 * sym("n")}, {{"n", 5}});
}

void samples_slice(SampleSink &out) {
  const Dim n = sym("n");
  auto sample = [&](const char *name, Shape from, int64_t dim, Dim start, Dim end, int64_t step = 1,
                    std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(from))},
                   .attrs = {{"dim", dim}, {"start", start}, {"end", end}, {"step", step}},
                   .sizes = std::move(sizes)});
  };
  sample("head", {17, 5}, 0, 0, 7);
  sample("tail", {5, 33}, -1, 16, 33);
  sample("from_the_end", {17}, 0, -5, -1);
  sample("steps", {3, 65}, 1, 1, 64, 3);
  sample("empty", {7, 3}, 0, 4, 4);
  sample("whole", {7, 3}, 1, 0, 3);
  sample("symbolic_end", {n, 3}, 0, 1, n, 2, {{"n", 8}});
  sample("symbolic_half", {2 * n, n}, 0, n, 2 * n, 1, {{"n", 7}});
  sample("symbolic_from_the_end", {n, 3}, 0, -2, n, 1, {{"n", 5}});
  sample("reversed", {3, 17}, 1, -1, -18, -1);
  sample("reversed_steps", {33, 5}, 0, 30, 2, -3);
  sample("reversed_nothing", {7, 3}, 0, 4, 4, -2);
  sample("reversed_empty", {0, 3}, 0, -1, -1, -1);
  sample("symbolic_reversed", {n, 3}, 0, -1, -1 - n, -1, {{"n", 5}});
  sample("symbolic_reversed_steps", {n}, 0, n - 2, 0, -2, {{"n", 8}});
}

void samples_unfold(SampleSink &out) {
  const auto sample = [&](const char *name, Shape x, int64_t dim, int64_t size, int64_t step,
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), {{"dim", dim}, {"size", size}, {"step", step}}, std::move(sizes)));
  };
  sample("vector", {17}, 0, 5, 1);
  sample("apart", {3, 17}, -1, 3, 5);
  sample("first_dim", {9, 5}, 0, 4, 2);
  sample("whole", {3, 5}, 1, 5, 1);
  sample("windows_of_nothing", {3, 4}, 1, 0, 2);
  sample("symbolic", {sym("n"), 3}, 0, 2, 2, {{"n", 7}});
}

void samples_diagonal(SampleSink &out) {
  const auto sample = [&](const char *name, Shape x, AttrMap attrs, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), std::move(attrs), std::move(sizes)));
  };
  sample("square", {5, 5}, {});
  sample("above", {3, 5, 7}, {{"dim1", -2}, {"dim2", -1}, {"offset", 2}});
  sample("below", {5, 3, 7}, {{"dim1", 0}, {"dim2", 2}, {"offset", -3}});
  sample("dims_reversed", {5, 7}, {{"dim1", 1}, {"dim2", 0}, {"offset", 1}});
  sample("beyond", {3, 5}, {{"offset", 5}});
  sample("symbolic", {sym("n"), sym("m")}, {{"offset", 1}}, {{"n", 5}, {"m", 3}});
}

void samples_squeeze(SampleSink &out) {
  out.push_back({.name = "inner", .inputs = {f32({7, 1, 5})}, .attrs = {{"dims", ints({1})}}});
  out.push_back({.name = "several", .inputs = {f32({1, 7, 1})}, .attrs = {{"dims", ints({0, -1})}}});
  out.push_back({.name = "none", .inputs = {f32({1, 7})}, .attrs = {{"dims", ints({})}}});
  out.push_back(
      {.name = "symbolic", .inputs = {f32({sym("n"), 1})}, .attrs = {{"dims", ints({1})}}, .sizes = {{"n", 5}}});
  out.push_back(
      {.name = "one_at_the_call", .inputs = {f32({sym("n"), 3})}, .attrs = {{"dims", ints({0})}}, .sizes = {{"n", 1}}});
}

void samples_unsqueeze(SampleSink &out) {
  out.push_back({.name = "inner", .inputs = {f32({7, 5})}, .attrs = {{"dims", ints({1})}}});
  out.push_back({.name = "both_ends", .inputs = {f32({7, 5})}, .attrs = {{"dims", ints({0, -1})}}});
  out.push_back({.name = "scalar", .inputs = {f32({})}, .attrs = {{"dims", ints({0})}}});
  out.push_back({.name = "none", .inputs = {f32({7})}, .attrs = {{"dims", ints({})}}});
  out.push_back(
      {.name = "symbolic", .inputs = {f32({sym("n"), 3})}, .attrs = {{"dims", ints({2})}}, .sizes = {{"n", 5}}});
}

// ---- records

Op view(std::string_view name, std::string_view doc, std::vector<AttrDef> attrs, Status (*infer)(InferContext &),
        OpMeaning meaning, uint32_t flags = 0) {
  meaning.gradient = by_rule("x");
  return {{.name = name,
           .doc = doc,
           .flags = op_flags::view | flags,
           .args = {{"x", "any shape", any_type}},
           .result_names = {"y"},
           .attrs = std::move(attrs),
           .infer = infer},
          meaning};
}

const Op views_records[] = {
    view("permute", "Reorders dims: dim d of the result is dim dims[d] of x.",
         {{.name = "dims",
           .doc = "a permutation of x's dims",
           .kind = AttrKind::i64,
           .is_list = true,
           .required = true}},
         infer_permute, {.view = view_permute, .samples = samples_permute}),
    view("expand", "Repeats along dims of size 1, and along new leading dims.",
         {{.name = "shape", .doc = "of the result", .kind = AttrKind::dim, .is_list = true, .required = true}},
         infer_expand, {.view = view_expand, .samples = samples_expand}),
    view("slice",
         "The elements start, start + step, ... before end along one dim; literals below 0 count from the end. With a "
         "step below 0 they go down to the one after end, which is -size - 1 (as a literal, or in the dim's symbols) "
         "where the first is to be the last. Ends in the wrong order or beyond the size are errors, where PyTorch and "
         "NumPy clamp.",
         {{.name = "dim", .doc = "the dim to cut", .kind = AttrKind::i64, .required = true},
          {.name = "start", .doc = "first index", .kind = AttrKind::dim, .fallback = Dim(0)},
          {.name = "end", .doc = "index after the last", .kind = AttrKind::dim, .required = true},
          {.name = "step", .doc = "not 0", .kind = AttrKind::i64, .fallback = 1}},
         infer_slice, {.view = view_slice, .samples = samples_slice}),
    view("unfold", "The windows of `size` elements of one dim that begin `step` apart, along a new last dim.",
         {dim_attr("of x"),
          {.name = "size", .doc = "of a window", .kind = AttrKind::i64, .required = true},
          {.name = "step", .doc = "at least 1", .kind = AttrKind::i64, .fallback = 1}},
         infer_unfold, {.view = view_unfold, .samples = samples_unfold}),
    view("diagonal", "The elements of two dims whose indices differ by `offset`, along a new last dim in their place.",
         {{.name = "offset", .doc = "the index of dim2 less that of dim1", .kind = AttrKind::i64, .fallback = 0},
          {.name = "dim1", .doc = "the dim of rows", .kind = AttrKind::i64, .fallback = 0},
          {.name = "dim2", .doc = "the dim of columns", .kind = AttrKind::i64, .fallback = 1}},
         infer_diagonal, {.view = view_diagonal, .samples = samples_diagonal}),
    view("squeeze", "Removes dims of size 1.",
         {{.name = "dims", .doc = "the dims of x to remove", .kind = AttrKind::i64, .is_list = true, .required = true}},
         infer_squeeze, {.view = view_squeeze, .samples = samples_squeeze}),
    view("unsqueeze", "Adds dims of size 1.",
         {{.name = "dims",
           .doc = "the dims of the result to add",
           .kind = AttrKind::i64,
           .is_list = true,
           .required = true}},
         infer_unsqueeze, {.view = view_unsqueeze, .samples = samples_unsqueeze}, op_flags::new_dims),
};

}  // namespace

std::span<const Op> view_ops() { return views_records; }

}  // namespace kiln::ops
