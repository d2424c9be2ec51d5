// Ops that pick by several indices, by rows of them, or by lengths.
#include "runtime/ops/indices.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// ---- index

Status infer_index(InferContext &c) {
  KILN_ASSIGN(const Picking picking, checked_picking(c, 1));
  c.results = {make_type(c.inputs[0].dtype, picked_shape(c.inputs[0].dims, picking))};
  return {};
}

Status lower_index(LowerContext &c) {
  const Picking picking = picking_of(c.attrs, c.inputs, 1);
  const std::vector<Expr> axes = c.axes();
  const std::span<const Expr> own = std::span(axes).subspan(picking.dim, picking.shape.size());
  std::vector<Expr> index(axes.begin(), axes.begin() + static_cast<ptrdiff_t>(picking.dim));
  int valid = -1;
  for (size_t k = 0; k < picking.count; ++k) {
    const int loaded = c.load(1 + k, broadcast_index(c.inputs[1 + k].dims, own));
    const Picked one = picked_index(c.body, loaded, c.inputs[0].dims[picking.dim + k]);
    index.push_back(one.index);
    valid = both(c.body, valid, one.valid);
  }
  index.insert(index.end(), axes.begin() + static_cast<ptrdiff_t>(picking.dim + own.size()), axes.end());
  c.body.yield(c.load(0, std::move(index), valid));
  return {};
}

Status reference_index(ReferenceContext &c) {
  const PickedPlaces places(c, 1);
  return pick_each(c, *c.inputs[0], [&](int64_t k) { return places.at(k); });
}

// ---- take_along

Status infer_take_along(InferContext &c) {
  const TensorType &x = c.inputs[0], &index = c.inputs[1];
  KILN_TRY(require_rank(c, 1, x.rank()));
  KILN_ASSIGN(const int64_t axis, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  const auto dim = static_cast<size_t>(axis);
  Shape left = x.dims, right = index.dims;
  left[dim] = right[dim] = 1;
  KILN_ASSIGN(Shape shape, c.broadcast(left, right));
  shape[dim] = index.dims[dim];
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

Status decompose_take_along(DecomposeContext &c) {
  Composer g(c);
  const Shape &dims = c.node.results[0].dims;
  const size_t dim = dim_of(c, dims.size());
  Shape all = dims;
  all[dim] = c.type(c.node.inputs[0]).dims[dim];
  const ValueId x = g("expand", {c.node.inputs[0]}, {{"shape", AttrValue(all)}});
  const ValueId index = g("expand", {c.node.inputs[1]}, {{"shape", AttrValue(dims)}});
  return g.give({g("gather", {x, index}, {{"dim", static_cast<int64_t>(dim)}})});
}

Status reference_take_along(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &index = *c.inputs[1];
  const std::vector<int64_t> &shape = c.results[0].shape;
  const size_t dim = dim_of(c, shape.size());
  const std::vector<int64_t> own = dense_strides(shape), index_strides = broadcast_strides(index.shape, shape);
  std::vector<int64_t> strides = broadcast_strides(x.shape, shape);
  strides[dim] = 0;
  const int64_t size = x.shape[dim], step = dense_strides(x.shape)[dim];
  const ReadElements<int64_t> indices(index);
  return pick_each(c, x, [&](int64_t k) -> Result<int64_t> {
    int64_t from = 0, in_index = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      from += k / own[d] % shape[d] * strides[d];
      in_index += k / own[d] % shape[d] * index_strides[d];
    }
    const int64_t i = indices[static_cast<size_t>(in_index)];
    if (i < 0 || i >= size) return out_of_range(i, size);
    return from + i * step;
  });
}

// ---- gather_nd

Status infer_gather_nd(InferContext &c) {
  Shape shape;
  KILN_TRY(infer_rows_of_indices(c, 1, shape));
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}

Status decompose_gather_nd(DecomposeContext &c) {
  Composer g(c);
  std::vector<ValueId> operands{c.node.inputs[0]};
  for (ValueId column : columns_of(c, g, c.node.inputs[1])) operands.push_back(column);
  return g.give({g("index", operands)});
}

Status reference_gather_nd(ReferenceContext &c) {
  const RowPlaces places(*c.inputs[0], *c.inputs[1]);
  return pick_each(c, *c.inputs[0], [&](int64_t k) { return places.at(k); });
}

// ---- reverse_sequence

Status infer_reverse_sequence(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  KILN_ASSIGN(const int64_t batch, c.axis(c.attr("batch_dim").i64(), x.rank(), "batch_dim"));
  if (dim == batch) return c.fail("dim and batch_dim are both ", dim, ", expected two dims");
  KILN_TRY(require_rank(c, 1, 1));
  KILN_TRY(
      c.require_equal(c.inputs[1].dims[0], x.dims[static_cast<size_t>(batch)], "dim 0 of lengths and batch_dim of x"));
  return infer_same(c);
}

Status lower_reverse_sequence(LowerContext &c) {
  const size_t dim = dim_of(c, c.result.rank()), batch = normal_axis(c.attr("batch_dim").i64(), c.result.rank());
  kernel::BodyBuilder &body = c.body;
  const int length = body.convert(c.load(1, {c.axis(batch)}), DType::i64), at = body.index(c.axis(dim));
  const int last = body.op(Core::sub, length, body.index(1));
  const int from = body.op(Core::select, body.op(Core::lt, at, length), body.op(Core::sub, last, at), at);
  std::vector<Expr> index = c.axes();
  const Picked picked = picked_index(body, from, c.result.dims[dim]);
  index[dim] = picked.index;
  body.yield(c.load(0, std::move(index), picked.valid));
  return {};
}

Status reference_reverse_sequence(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const size_t dim = dim_of(c, x.shape.size()), batch = normal_axis(c.attr("batch_dim").i64(), x.shape.size());
  const std::vector<int64_t> strides = dense_strides(x.shape);
  const ReadElements<int64_t> lengths(*c.inputs[1]);
  return pick_each(c, x, [&](int64_t k) -> Result<int64_t> {
    const int64_t t = k / strides[dim] % x.shape[dim];
    const int64_t length = lengths[static_cast<size_t>(k / strides[batch] % x.shape[batch])];
    if (length > x.shape[dim]) return out_of_range(length - 1, x.shape[dim]);
    return t < length ? k + (length - 1 - 2 * t) * strides[dim] : k;
  });
}

// ---- samples

void samples_index(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  add_index_sample(out, "rows", {f32({7, 17}), i64({5})}, {}, 7);
  add_index_sample(out, "elements", {f32({7, 9}), i64({33}), i64({33})}, {}, 7);
  add_index_sample(out, "broadcast", {f32({7, 9, 5}), i64({3, 1}), i64({4})}, {}, 7);
  add_index_sample(out, "last_dims", {f32({3, 7, 9}), i64({5}), i64({5})}, {{"dim", 1}}, 7);
  add_index_sample(out, "scalar_index", {f32({3, 5}), i64({})}, {{"dim", -2}}, 3);
  add_index_sample(out, "integers", {i64({9, 9}), i64({4}), i64({1})}, {}, 9);
  add_index_sample(out, "nothing", {f32({7, 3}), i64({0, 2})}, {}, 7);
  add_index_sample(out, "symbolic", {f32({n, 9, m}), i64({m}), i64({m})}, {}, 5, {{"n", 5}, {"m", 33}});
}
void samples_take_along(SampleSink &out) {
  const Dim n = sym("n");
  add_index_sample(out, "rows", {f32({7, 17}), i64({5, 17})}, {{"dim", 0}}, 7);
  add_index_sample(out, "one_row_of_indices", {f32({7, 17}), i64({1, 9})}, {{"dim", 1}}, 17);
  add_index_sample(out, "one_row_of_elements", {f32({1, 17}), i64({5, 3})}, {{"dim", -1}}, 17);
  add_index_sample(out, "integers", {i64({9}), i64({4})}, {{"dim", 0}}, 9);
  add_index_sample(out, "empty", {f32({7, 3}), i64({0, 3})}, {{"dim", 0}}, 7);
  add_index_sample(out, "symbolic", {f32({n, 3}), i64({5, 1})}, {{"dim", 0}}, 7, {{"n", 7}});
}
void samples_gather_nd(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  add_index_sample(out, "elements", {f32({7, 9}), i64({33, 2})}, {}, 7);
  add_index_sample(out, "rows", {f32({7, 17}), i64({2, 3, 1})}, {}, 7);
  add_index_sample(out, "one", {f32({5, 5, 5}), i64({2})}, {}, 5);
  add_index_sample(out, "integers", {i64({9, 9}), i64({4, 2})}, {}, 9);
  add_index_sample(out, "nothing", {f32({7, 3}), i64({0, 2})}, {}, 7);
  add_index_sample(out, "symbolic", {f32({n, 9, m}), i64({m, 2})}, {}, 5, {{"n", 5}, {"m", 33}});
}
void samples_reverse_sequence(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  add_index_sample(out, "rows", {f32({5, 17}), i64({5})}, {{"dim", 1}, {"batch_dim", 0}}, 18);
  add_index_sample(out, "time_first", {f32({7, 3, 5}), i64({3})}, {{"dim", 0}, {"batch_dim", 1}}, 8);
  add_index_sample(out, "integers", {i64({3, 9}), i64({3})}, {{"dim", -1}, {"batch_dim", 0}}, 10);
  add_index_sample(out, "empty", {f32({3, 0}), i64({3})}, {{"dim", 1}, {"batch_dim", 0}}, 1);
  add_index_sample(out, "symbolic", {f32({n, m}), i64({n})}, {{"dim", 1}, {"batch_dim", 0}}, 8, {{"n", 5}, {"m", 7}});
}

// ---- records

ArgDef indices_arg(std::string_view name, std::string_view doc, Arity arity = Arity::one) {
  return {name, doc, index_types, arity, /*same_dtype=*/false};
}

const Op picking_records[] = {
    {{.name = "index",
      .doc =
          "y[k] = x[indices[0][k], indices[1][k], ...], for each index k of the indices: they stand for as many dims "
          "of x, from `dim` on, and their shape takes the place of these.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type},
               indices_arg("indices", "broadcast together; none is below 0", Arity::variadic)},
      .result_names = {"y"},
      .attrs = {dim_attr("the first dim that an index stands for", 0)},
      .infer = infer_index},
     {.lower = lower_index, .reference = reference_index, .gradient = by_rule("x"), .samples = samples_index}},
    {{.name = "take_along",
      .doc = "gather, of operands that are broadcast to each other in all dims but `dim`.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type}, indices_arg("index", "of x's rank")},
      .result_names = {"y"},
      .attrs = {dim_attr("the dim that index tells the place in")},
      .infer = infer_take_along},
     {.decompose = decompose_take_along,
      .reference = reference_take_along,
      .gradient = through_decomposition(),
      .samples = samples_take_along}},
    {{.name = "gather_nd",
      .doc =
          "y[i, ...] = x[indices[i, 0], indices[i, 1], ..., ...]: a row of indices tells an element, or a part, of x.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type}, indices_arg("indices", "[..., k]: for the first k dims of x")},
      .result_names = {"y"},
      .infer = infer_gather_nd},
     {.decompose = decompose_gather_nd,
      .reference = reference_gather_nd,
      .gradient = through_decomposition(),
      .samples = samples_gather_nd}},
    {{.name = "reverse_sequence",
      .doc =
          "The first lengths[b] elements along `dim` from the last to the first, for each b in batch_dim; the others "
          "stay. A length beyond the dim is an index out of range; one below 1 reverses nothing.",
      .flags = op_flags::moves,
      .args = {{"x", "at least two dims", any_type}, indices_arg("lengths", "[x's batch_dim]")},
      .result_names = {"y"},
      .attrs = {dim_attr("the dim that is reversed"),
                {.name = "batch_dim", .doc = "the dim that has a length each", .kind = AttrKind::i64, .fallback = 0}},
      .infer = infer_reverse_sequence},
     {.lower = lower_reverse_sequence,
      .reference = reference_reverse_sequence,
      .gradient = by_rule("x"),
      .samples = samples_reverse_sequence}},
};

}  // namespace

std::span<const Op> picking_ops() { return picking_records; }

}  // namespace kiln::ops
