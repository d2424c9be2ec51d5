// Ops whose operand holds indices. One out of range is an error of the call; its element reads as 0.
#include "runtime/ops/indices.h"

namespace kiln::ops {
namespace {

// A load at `index`, where position `dim` of it is a loaded value; guarded by Core::in_range.
int guarded_load(LowerContext &c, std::vector<Expr> index, size_t dim, int loaded) {
  const Picked picked = picked_index(c.body, loaded, c.inputs[0].dims[dim]);
  index[dim] = picked.index;
  return c.load(0, std::move(index), picked.valid);
}

Status infer_gather(InferContext &c) {
  const TensorType &x = c.inputs[0], &index = c.inputs[1];
  KILN_TRY(require_rank(c, 1, x.rank()));
  KILN_ASSIGN(int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  for (size_t d = 0; d < x.rank(); ++d)
    if (d != static_cast<size_t>(dim))
      KILN_TRY(require_at_most(c, index.dims[d], x.dims[d], str_cat("dim ", d, " of index <= dim ", d, " of x")));
  c.results = {make_type(x.dtype, index.dims)};
  return {};
}

Status lower_gather(LowerContext &c) {
  const int loaded = c.load(1, c.axes());
  c.body.yield(guarded_load(c, c.axes(), dim_of(c, c.result.rank()), loaded));
  return {};
}

Status reference_gather(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &index = *c.inputs[1];
  RefTensor &y = c.results[0];
  const size_t dim = dim_of(c, x.shape.size());
  std::vector<int64_t> strides = dense_strides(x.shape);
  const int64_t step = strides[dim], size = x.shape[dim];
  strides[dim] = 0;
  const ReadElements<int64_t> indices(index);
  KILN_TRY(require_in_range(c, index, size));
  return dispatch(y, [&](auto zero) -> Status {
    const ReadElements<decltype(zero)> in(x);
    const WriteElements<decltype(zero)> out(y);
    return walk_in_ranges<1>(c, y.shape, {strides}, [&](size_t k, auto at) {
      out.set(k, in[static_cast<size_t>(at[0] + indices[k] * step)]);
    });
  });
}

Status infer_index_select(InferContext &c) {
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), c.inputs[0].rank(), "dim"));
  KILN_TRY(require_rank(c, 1, 1));
  c.results = {make_type(c.inputs[0].dtype, c.inputs[0].dims)};
  c.results[0].dims[static_cast<size_t>(dim)] = c.inputs[1].dims[0];
  return {};
}

Status lower_index_select(LowerContext &c) {
  const size_t dim = dim_of(c, c.result.rank());
  const int loaded = c.load(1, {c.axis(dim)});
  c.body.yield(guarded_load(c, c.axes(), dim, loaded));
  return {};
}

Status reference_index_select(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &index = *c.inputs[1];
  RefTensor &y = c.results[0];
  const size_t dim = dim_of(c, x.shape.size());
  const std::vector<int64_t> strides = dense_strides(x.shape), places = dense_strides(y.shape);
  const ReadElements<int64_t> indices(index);
  if (y.size() > 0) KILN_TRY(require_in_range(c, index, x.shape[dim]));
  return dispatch(y, [&](auto zero) -> Status {
    const ReadElements<decltype(zero)> in(x);
    const WriteElements<decltype(zero)> out(y);
    return c.for_ranges(y.size(), 1, [&](int64_t begin, int64_t end) -> Status {
      for (int64_t k = begin; k < end; ++k) {
        int64_t at = 0;
        for (size_t d = 0; d < y.shape.size(); ++d) {
          const int64_t i = k / places[d] % y.shape[d];
          at += (d == dim ? indices[static_cast<size_t>(i)] : i) * strides[d];
        }
        out.set(static_cast<size_t>(k), in[static_cast<size_t>(at)]);
      }
      return {};
    });
  });
}

Status infer_embedding(InferContext &c) {
  KILN_TRY(require_rank(c, 0, 2));
  Shape shape = c.inputs[1].dims;
  shape.push_back(c.inputs[0].dims[1]);
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}

Status lower_embedding(LowerContext &c) {
  std::vector<Expr> at = c.axes();
  const Expr column = at.back();
  at.pop_back();
  const int loaded = c.load(1, std::move(at));
  c.body.yield(guarded_load(c, {0, column}, 0, loaded));
  return {};
}

Status reference_embedding(ReferenceContext &c) {
  const RefTensor &weight = *c.inputs[0], &index = *c.inputs[1];
  const int64_t rows = weight.shape[0], columns = weight.shape[1];
  return dispatch(weight, [&](auto zero) -> Status {
    const ReadElements<decltype(zero)> in(weight);
    const ReadElements<int64_t> indices(index);
    const WriteElements<decltype(zero)> out(c.results[0]);
    return c.for_ranges(index.size(), columns, [&](int64_t begin, int64_t end) -> Status {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t i = indices[static_cast<size_t>(k)];
        if (columns > 0 && (i < 0 || i >= rows)) return out_of_range(i, rows);
        for (int64_t d = 0; d < columns; ++d)
          out.set(static_cast<size_t>(k * columns + d), in[static_cast<size_t>(i * columns + d)]);
      }
      return {};
    });
  });
}

void samples_gather(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  auto sample = [&](const char *name, TensorType x, Shape index, int64_t dim, int64_t size,
                    std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {std::move(x), i64(std::move(index))},
                   .attrs = {{"dim", dim}},
                   .sizes = std::move(sizes),
                   .int_low = 0,
                   .int_high = size});
  };
  sample("rows", f32({7, 17}), {5, 17}, 0, 7);
  sample("columns", f32({5, 33}), {5, 9}, -1, 33);
  sample("middle", f32({3, 7, 5}), {3, 2, 5}, 1, 7);
  sample("vector", f32({65}), {130}, 0, 65);
  sample("smaller_index", f32({7, 17}), {7, 3}, 0, 7);
  sample("integers", i64({9}), {4}, 0, 9);
  sample("empty", f32({7, 3}), {0, 3}, 0, 7);
  sample("symbolic", f32({n, 3}), {m, 3}, 0, 5, {{"n", 5}, {"m", 7}});
}

void samples_index_select(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  const auto sample = [&](const char *name, TensorType x, Dim index, int64_t dim, int64_t size,
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {std::move(x), i64({std::move(index)})},
                   .attrs = {{"dim", dim}},
                   .sizes = std::move(sizes),
                   .int_low = 0,
                   .int_high = size});
  };
  sample("rows", f32({7, 17}), 9, 0, 7);
  sample("columns", f32({5, 33}), 9, -1, 33);
  sample("middle", f32({3, 7, 5}), 2, 1, 7);
  sample("vector", f32({65}), 130, 0, 65);
  sample("integers", i64({9, 2}), 4, 0, 9);
  sample("nothing", f32({7, 3}), 0, 0, 7);
  sample("symbolic", f32({n, 3}), m, 0, 5, {{"n", 5}, {"m", 7}});
  sample("narrow_index", f32({5, 3}), 4, 0, 5);
  out.back().inputs[1].dtype = DType::i32;
}

void samples_embedding(SampleSink &out) {
  auto sample = [&](const char *name, Shape weight, Shape index, int64_t rows,
                    std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(weight)), i64(std::move(index))},
                   .sizes = std::move(sizes),
                   .int_low = 0,
                   .int_high = rows});
  };
  sample("tokens", {33, 17}, {7}, 33);
  sample("batch", {65, 8}, {3, 5}, 65);
  sample("scalar_index", {5, 7}, {}, 5);
  sample("no_tokens", {5, 7}, {0}, 5);
  sample("one_row", {1, 33}, {7}, 1);
  sample("symbolic", {65, 32}, {sym("b"), sym("t")}, 65, {{"b", 2}, {"t", 17}});
  sample("narrow_index", {33, 17}, {7}, 33);
  out.back().inputs[1].dtype = DType::i32;
}

const Op indexing_records[] = {
    {{.name = "gather",
      .doc = "Picks along one dim: y[i][j] = x[index[i][j]][j] for dim 0, as torch.gather.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type},
               {"index", "of x's rank, and no larger than x in the other dims", index_types, Arity::one,
                /*same_dtype=*/false}},
      .result_names = {"y"},
      .attrs = {{.name = "dim", .doc = "the dim that is indexed", .kind = AttrKind::i64, .required = true}},
      .infer = infer_gather},
     {.lower = lower_gather, .reference = reference_gather, .gradient = by_rule("x"), .samples = samples_gather}},

    {{.name = "index_select",
      .doc = "Picks along one dim, the same everywhere: y[i][j] = x[index[i]][j] for dim 0.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type},
               {"index", "[M], each 0 <= index < x's size", index_types, Arity::one, /*same_dtype=*/false}},
      .result_names = {"y"},
      .attrs = {{.name = "dim", .doc = "the dim that is indexed", .kind = AttrKind::i64, .required = true}},
      .infer = infer_index_select},
     {.lower = lower_index_select,
      .reference = reference_index_select,
      .gradient = by_rule("x"),
      .samples = samples_index_select}},

    {{.name = "embedding",
      .doc = "Picks rows of a table: y[..., :] = weight[index[...], :].",
      .flags = op_flags::moves,
      .args = {{"weight", "[V, D]", any_type},
               {"index", "any shape; 0 <= index < V", index_types, Arity::one, /*same_dtype=*/false}},
      .result_names = {"y"},
      .infer = infer_embedding},
     {.lower = lower_embedding,
      .reference = reference_embedding,
      .gradient = by_rule("weight"),
      .samples = samples_embedding}},
};

}  // namespace

std::span<const Op> indexing_ops() { return indexing_records; }

}  // namespace kiln::ops
