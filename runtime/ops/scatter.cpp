// Ops that write where an operand holds indices, in row-major order of what is written. One out of range is an error
// of the call, and writes nothing.
#include "runtime/ops/indices.h"

namespace kiln::ops {
namespace {

using kernel::Core;
using Mode = kernel::Store::Mode;

constexpr std::pair<std::string_view, Mode> modes[] = {
    {"scatter", Mode::plain},   {"scatter_add", Mode::add}, {"scatter_mul", Mode::mul},  {"scatter_min", Mode::min},
    {"scatter_max", Mode::max}, {"index_put", Mode::plain}, {"index_put_add", Mode::add}};
Mode mode_of(const Op &op) {
  return std::ranges::find(modes, op.name, &std::pair<std::string_view, Mode>::first)->second;
}

// ---- lowering

// x, for a start; yield 0 of the body is to be `source`, written at `index` if `valid` holds.
void lower_writes(LowerContext &c, int source, std::vector<Expr> index, int valid) {
  kernel::Scatter &scatter = c.compute.scatter.emplace();
  kernel::BodyBuilder begin(scatter.begin);
  begin.yield(begin.load(0, c.inputs[0].dtype, c.axes()));
  c.body.yield(source);
  // The indices name the values that the body yields.
  std::vector<int> yields;
  for (Expr &e : index)
    e = e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() != Expr::Kind::value) return {};
      c.body.yield(static_cast<int>(leaf.id()));
      yields.push_back(static_cast<int>(leaf.id()));
      return Expr::value(static_cast<uint32_t>(yields.size()));
    });
  if (valid >= 0) {
    c.body.yield(valid);
    scatter.valid = static_cast<int32_t>(yields.size()) + 1;
  }
  scatter.index = std::move(index);
  scatter.mode = mode_of(c.op);
}

// ---- scatter and what combines: at one index along one dim

Status lower_scatter(LowerContext &c) {
  const size_t dim = dim_of(c, c.result.rank());
  const Shape &dims = c.inputs[1].dims;
  std::vector<Expr> at;
  for (size_t d = 0; d < dims.size(); ++d)
    at.push_back(d != dim && dims[d] == c.result.dims[d] ? c.axis(d) : c.reduce_axis(dims[d]));
  const Picked picked = picked_index(c.body, c.load(1, at), c.result.dims[dim]);
  const int source = c.load(2, at);
  at[dim] = picked.index;
  lower_writes(c, source, std::move(at), picked.valid);
  return {};
}

Status reference_scatter(ReferenceContext &c) { return write_along(c, {mode_of(c.op)}); }

// ---- index_put: at several indices, one for each of some dims that follow one another

Status infer_index_put(InferContext &c) {
  KILN_ASSIGN(const Picking picking, checked_picking(c, 2));
  const Shape shape = picked_shape(c.inputs[0].dims, picking);
  KILN_ASSIGN(const Shape both, c.broadcast(shape, c.inputs[1].dims));
  if (both.size() != shape.size())
    return c.fail("source is ", c.inputs[1].text(), ", expected what broadcasts to ", text_of(shape));
  for (size_t d = 0; d < shape.size(); ++d)
    KILN_TRY(c.require_equal(both[d], shape[d], str_cat("dim ", d, " of source and of what is picked")));
  return infer_same(c);
}

Status lower_index_put(LowerContext &c) {
  const Picking picking = picking_of(c.attrs, c.inputs, 2);
  const size_t first = picking.dim, behind = first + picking.shape.size(), rest = first + picking.count;
  std::vector<Expr> index(c.result.rank()), point(picked_shape(c.result.dims, picking).size());
  for (size_t d = 0; d < first; ++d) point[d] = index[d] = c.axis(d);
  for (size_t d = 0; d < picking.shape.size(); ++d) point[first + d] = c.reduce_axis(picking.shape[d]);
  for (size_t d = rest; d < index.size(); ++d) point[behind + d - rest] = index[d] = c.axis(d);
  const std::span<const Expr> own = std::span(point).subspan(first, picking.shape.size());
  int valid = -1;
  for (size_t k = 0; k < picking.count; ++k) {
    const int loaded = c.load(2 + k, broadcast_index(c.inputs[2 + k].dims, own));
    const Picked one = picked_index(c.body, loaded, c.result.dims[first + k]);
    index[first + k] = one.index;
    valid = both(c.body, valid, one.valid);
  }
  lower_writes(c, c.load(1, broadcast_index(c.inputs[1].dims, point)), std::move(index), valid);
  return {};
}

Status reference_index_put(ReferenceContext &c) {
  const RefTensor &source = *c.inputs[1];
  const PickedPlaces places(c, 2);
  const std::vector<int64_t> &shape = places.shape();
  const std::vector<int64_t> own = dense_strides(shape), strides = broadcast_strides(source.shape, shape);
  return write_all(c, {mode_of(c.op)}, source, count_of(shape), [&](int64_t k) -> Result<Move> {
    Move move{0, 0};
    KILN_ASSIGN(move.to, places.at(k));
    for (size_t d = 0; d < shape.size(); ++d) move.from += k / own[d] % shape[d] * strides[d];
    return move;
  });
}

// ---- samples

void sample_at(SampleSink &out, const char *name, TensorType x, Shape index, Shape source, int64_t dim, int64_t size,
               std::map<std::string, int64_t> sizes = {}) {
  const DType dtype = x.dtype;
  out.push_back({.name = name,
                 .inputs = {std::move(x), i64(std::move(index)), make_type(dtype, std::move(source))},
                 .attrs = {{"dim", dim}},
                 .sizes = std::move(sizes),
                 .int_low = 0,
                 .int_high = size});
}

void samples_scatter(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  sample_at(out, "rows", f32({7, 17}), {5, 17}, {5, 17}, 0, 7);
  sample_at(out, "columns", f32({5, 33}), {5, 65}, {5, 65}, -1, 33);
  sample_at(out, "middle", f32({3, 7, 5}), {3, 9, 5}, {3, 9, 5}, 1, 7);
  sample_at(out, "vector", f32({65}), {130}, {130}, 0, 65);
  sample_at(out, "smaller_index", f32({7, 17}), {5, 3}, {6, 9}, 0, 7);
  sample_at(out, "into_one", f32({3, 1}), {3, 4}, {3, 4}, 1, 1);
  sample_at(out, "integers", i64({9}), {4}, {4}, 0, 9);
  sample_at(out, "nothing", f32({7, 3}), {0, 3}, {0, 3}, 0, 7);
  sample_at(out, "nowhere", f32({7, 0}), {7, 0}, {7, 0}, 1, 1);
  sample_at(out, "symbolic", f32({n, m}), {9, m}, {9, m}, 0, 5, {{"n", 5}, {"m", 33}});
  sample_at(out, "symbolic_columns", f32({n, m}), {n, 9}, {n, 9}, 1, 7, {{"n", 5}, {"m", 7}});
}

void samples_index_put(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  const auto sample = [&](const char *name, TensorType x, Shape source, std::vector<Shape> indices, int64_t dim,
                          int64_t size, std::map<std::string, int64_t> sizes = {}) {
    Sample made{.name = name,
                .inputs = {x, make_type(x.dtype, std::move(source))},
                .attrs = {{"dim", dim}},
                .sizes = std::move(sizes),
                .int_low = 0,
                .int_high = size};
    for (Shape &index : indices) made.inputs.push_back(i64(std::move(index)));
    out.push_back(std::move(made));
  };
  sample("rows", f32({7, 17}), {5, 17}, {{5}}, 0, 7);
  sample("elements", f32({7, 9}), {33}, {{33}, {33}}, 0, 7);
  sample("broadcast", f32({7, 9, 5}), {3, 4, 1}, {{3, 1}, {4}}, 0, 7);
  sample("last_dims", f32({3, 7, 9}), {3, 5}, {{5}, {5}}, 1, 7);
  sample("scalar_source", f32({33}), {}, {{9}}, 0, 33);
  sample("scalar_index", f32({3, 5}), {5}, {{}}, 0, 3);
  sample("integers", i64({9, 9}), {4}, {{4}, {4}}, 0, 9);
  sample("nothing", f32({7, 3}), {0, 3}, {{0}}, 0, 7);
  sample("symbolic", f32({n, 9, m}), {5, m}, {{5}, {5}}, 0, 5, {{"n", 5}, {"m", 33}});
}

// ---- records

Op at_one_dim(std::string_view name, std::string_view doc, uint32_t flags, DTypes types, Ties ties = Ties::none) {
  return {{.name = name,
           .doc = doc,
           .flags = flags | op_flags::replaces,
           .args = {{"x", "any shape", types},
                    {"index", "of x's rank, and in no dim but `dim` longer than x", index_types, Arity::one,
                     /*same_dtype=*/false},
                    {"source", "of x's rank, and in no dim shorter than index", types}},
           .result_names = {"y"},
           .attrs = {dim_attr("the dim that index tells the place in")},
           .infer = infer_scatter},
          {.lower = lower_scatter,
           .reference = reference_scatter,
           .gradient = by_rule("x, source", ties),
           .samples = samples_scatter}};
}

Op at_indices(std::string_view name, std::string_view doc, uint32_t flags, DTypes types, Ties ties = Ties::none) {
  return {{.name = name,
           .doc = doc,
           .flags = flags | op_flags::replaces,
           .args = {{"x", "any shape", types},
                    {"source",
                     "broadcasts to x's shape with the indices' shape in place of the dims that they stand for", types},
                    {"indices", "broadcast together; one for each of the dims from `dim` on", index_types,
                     Arity::variadic, /*same_dtype=*/false}},
           .result_names = {"y"},
           .attrs = {dim_attr("the first dim that an index stands for", 0)},
           .infer = infer_index_put},
          {.lower = lower_index_put,
           .reference = reference_index_put,
           .gradient = by_rule("x, source", ties),
           .samples = samples_index_put}};
}

const Op scatter_records[] = {
    at_one_dim("scatter",
               "x, with source[..., k, ...] at y[..., index[..., k, ...], ...]. Of two for one element the last "
               "in row-major order stays.",
               op_flags::moves, any_type, Ties::last),
    at_one_dim("scatter_add",
               "x, with source[..., k, ...] added to y[..., index[..., k, ...], ...], in row-major order.", 0,
               numeric_types),
    at_one_dim("scatter_mul",
               "x, with y[..., index[..., k, ...], ...] multiplied by source[..., k, ...], in row-major "
               "order.",
               0, numeric_types),
    at_one_dim("scatter_min",
               "The lesser of x and of all source[..., k, ...] for y[..., index[..., k, ...], ...]; NaN if "
               "one is.",
               0, numeric_types, Ties::even),
    at_one_dim("scatter_max",
               "The greater of x and of all source[..., k, ...] for y[..., index[..., k, ...], ...]; NaN if "
               "one is.",
               0, numeric_types, Ties::even),
    at_indices("index_put",
               "x, with source[k] at y[indices[0][k], indices[1][k], ...], for each index k of the indices. Of "
               "two for one element the last in row-major order stays.",
               op_flags::moves, any_type, Ties::last),
    at_indices("index_put_add",
               "x, with source[k] added to y[indices[0][k], indices[1][k], ...], for each index k of the "
               "indices, in row-major order.",
               0, numeric_types),
};

}  // namespace

std::span<const Op> scatter_ops() { return scatter_records; }

}  // namespace kiln::ops
