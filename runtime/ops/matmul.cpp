// Products of matrices.
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

using kernel::ContractRole;

bool is_transposed(const AttrMap &attrs, std::string_view name) { return attrs.find(name)->second.boolean(); }

// What numpy makes of a vector: a row on the left, a column on the right, of which the result has no dim.
struct Vectors {
  bool a, b;
};
Vectors vectors_of(size_t a_rank, size_t b_rank) { return {a_rank == 1, b_rank == 1}; }

Status infer_matmul(InferContext &c) {
  const TensorType &a = c.inputs[0], &b = c.inputs[1];
  KILN_ASSIGN(const DType dtype, product_dtype(c, 0, 1));
  if (a.rank() < 1 || b.rank() < 1)
    return c.fail("a is ", a.text(), ", b is ", b.text(), "; expected at least 1 dim each");
  const Vectors vector = vectors_of(a.rank(), b.rank());
  for (const auto &[is_vector, name] : {std::pair{vector.a, "transpose_a"}, std::pair{vector.b, "transpose_b"}})
    if (is_vector && is_transposed(c.attrs, name)) return c.fail(name, " is true of a vector, expected a matrix");
  const size_t a_k = a.rank() - (is_transposed(c.attrs, "transpose_a") ? 2 : 1),
               b_k = b.rank() - (vector.b || is_transposed(c.attrs, "transpose_b") ? 1 : 2);
  KILN_TRY(c.require_equal(a.dims[a_k], b.dims[b_k], str_cat("a dim ", a_k, " and b dim ", b_k)));
  KILN_ASSIGN(Shape shape, c.broadcast(std::span(a.dims).first(vector.a ? 0 : a.rank() - 2),
                                       std::span(b.dims).first(vector.b ? 0 : b.rank() - 2)));
  if (!vector.a) shape.push_back(a.dims[2 * a.rank() - 3 - a_k]);
  if (!vector.b) shape.push_back(b.dims[2 * b.rank() - 3 - b_k]);
  c.results = {make_type(dtype, std::move(shape))};
  return {};
}

// An operand's index: of `batch` dims of the result, aligned to the right as numpy does, then row and column.
std::vector<Expr> operand_index(const LowerContext &c, size_t operand, size_t batch, Expr row, Expr column,
                                bool transpose) {
  const Shape &dims = c.inputs[operand].dims;
  const size_t own = dims.size() - 2, added = batch - own;
  std::vector<Expr> index;
  for (size_t d = 0; d < own; ++d) index.push_back(dims[d].is(1) ? Expr(0) : c.axis(added + d));
  if (transpose) std::swap(row, column);
  index.push_back(std::move(row));
  index.push_back(std::move(column));
  return index;
}

Status lower_matmul(LowerContext &c) {
  const TensorType &a = c.inputs[0], &b = c.inputs[1];
  const Vectors vector = vectors_of(a.rank(), b.rank());
  const size_t rank = c.result.rank(), batch = rank - !vector.a - !vector.b, m = batch, n = rank - 1;
  const bool transpose_a = is_transposed(c.attrs, "transpose_a"), transpose_b = is_transposed(c.attrs, "transpose_b");
  const Expr k = c.reduce_axis(a.dims[a.rank() - (transpose_a ? 2 : 1)]);

  kernel::Contract &contract = c.compute.contract.emplace();
  kernel::BodyBuilder body_a(contract.a), body_b(contract.b);
  contract.accumulator = c.result.dtype;
  const std::vector<Expr> only_k = {k};
  const int value_a =
      body_a.load(0, a.dtype, vector.a ? only_k : operand_index(c, 0, batch, c.axis(m), k, transpose_a));
  const int value_b =
      body_b.load(1, b.dtype, vector.b ? only_k : operand_index(c, 1, batch, k, c.axis(n), transpose_b));
  body_a.yield(body_a.convert(value_a, contract.accumulator));
  body_b.yield(body_b.convert(value_b, contract.accumulator));

  // Batch dims that b lacks are more rows of a, when they are next to the rows: one product instead of many.
  c.compute.roles.assign(rank, ContractRole::batch);
  if (!vector.a) c.compute.roles[m] = ContractRole::m;
  if (!vector.b) c.compute.roles[n] = ContractRole::n;
  const size_t missing = batch - (vector.b ? 0 : b.rank() - 2);
  for (size_t d = batch; d-- > 0 && (d < missing || b.dims[d - missing].is(1));) c.compute.roles[d] = ContractRole::m;
  return {};
}

// The products of matrices for reference kernels: result b * m * n + i * n + j, from what `begins` gives b, the sum
// over s of a[a_first + i * a_row + s * a_step] * b[b_first + j * b_column + s * b_step].
struct Products {
  int64_t m, n, k, a_row, a_step, b_column, b_step;
  std::vector<std::array<int64_t, 2>> first;  // of each matrix of the result
};
// Tile by tile, each of which is widened once: an element of 16 bits takes as long to read as many products.
template <class T, class Wide, class Begin>
Status multiply(const ReferenceContext &c, const Products &p, Begin begin_of) {
  constexpr int64_t side = 32;
  const ReadElements<T> a(*c.inputs[0]), b(*c.inputs[1]);
  const WriteElements<T> y(c.results[0]);
  const int64_t down = (p.m + side - 1) / side, across = (p.n + side - 1) / side;
  const auto tiles = static_cast<int64_t>(p.first.size()) * down * across;
  return c.for_ranges(tiles, side * side * (p.k + 1), [&](int64_t begin, int64_t end) -> Status {
    std::vector<Wide> rows, columns;
    const auto widen = [&](std::vector<Wide> &lines, const ReadElements<T> &x, int64_t count, int64_t at, int64_t line,
                           int64_t step) {
      lines.clear();
      for (int64_t i = 0; i < count; ++i)
        for (int64_t s = 0; s < p.k; ++s) lines.push_back(Wide(x[static_cast<size_t>(at + i * line + s * step)]));
    };
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t matrix = tile / across / down, i0 = tile / across % down * side, j0 = tile % across * side;
      const int64_t height = std::min(side, p.m - i0), width = std::min(side, p.n - j0);
      const auto [a_first, b_first] = p.first[static_cast<size_t>(matrix)];
      widen(rows, a, height, a_first + i0 * p.a_row, p.a_row, p.a_step);
      widen(columns, b, width, b_first + j0 * p.b_column, p.b_column, p.b_step);
      for (int64_t i = 0; i < height; ++i)
        for (int64_t j = 0; j < width; ++j) {
          const Wide *row = rows.data() + i * p.k, *column = columns.data() + j * p.k;
          Wide sum = begin_of(j0 + j);
          for (int64_t s = 0; s < p.k; ++s) sum = add(sum, mul(row[s], column[s]));
          y.set(static_cast<size_t>((matrix * p.m + i0 + i) * p.n + j0 + j), static_cast<T>(sum));
        }
    }
    return {};
  });
}

Status reference_matmul(ReferenceContext &c) {
  const RefTensor &a = *c.inputs[0], &b = *c.inputs[1];
  RefTensor &y = c.results[0];
  const Vectors vector = vectors_of(a.shape.size(), b.shape.size());
  std::vector<int64_t> left_shape = a.shape, right_shape = b.shape, shape = y.shape;
  if (vector.a) left_shape.insert(left_shape.begin(), 1), shape.insert(shape.end() - !vector.b, 1);
  if (vector.b) right_shape.push_back(1), shape.push_back(1);
  const std::vector<int64_t> batch(shape.begin(), shape.end() - 2);
  auto strides_of = [&](std::vector<int64_t> own) {  // over the result's batch dims; rows and columns apart
    const int64_t matrix = own[own.size() - 2] * own.back();
    own.resize(own.size() - 2);
    std::vector<int64_t> strides = broadcast_strides(own, batch);
    for (int64_t &s : strides) s *= matrix;
    return strides;
  };
  const bool transpose_a = is_transposed(c.attrs, "transpose_a"), transpose_b = is_transposed(c.attrs, "transpose_b");
  const int64_t m = shape[shape.size() - 2], n = shape.back(),
                k = left_shape[left_shape.size() - (transpose_a ? 2 : 1)];
  const int64_t a_row = transpose_a ? 1 : k, a_step = transpose_a ? m : 1;
  const int64_t b_column = transpose_b ? k : 1, b_step = transpose_b ? 1 : n;
  Products products{m, n, k, a_row, a_step, b_column, b_step, {}};
  walk<2>(batch, {strides_of(left_shape), strides_of(right_shape)},
          [&](auto at) { products.first.push_back({at[0], at[1]}); });
  return dispatch_wide(y, [&](auto zero, auto wide) {
    return multiply<decltype(zero), decltype(wide)>(c, products, [&](int64_t) { return wide; });
  });
}

Status infer_linear(InferContext &c) {
  const TensorType &x = c.inputs[0], &weight = c.inputs[1];
  if (x.rank() < 1) return c.fail("x is ", x.text(), ", expected at least 1 dim");
  KILN_TRY(require_rank(c, 1, 2));
  KILN_ASSIGN(const DType dtype, product_dtype(c, 0, 1));
  KILN_TRY(c.require_equal(x.dims.back(), weight.dims[1], str_cat("x dim ", x.rank() - 1, " and weight dim 1")));
  if (c.inputs.size() == 3) {
    KILN_TRY(require_rank(c, 2, 1));
    KILN_TRY(require_bias(c, 2, dtype));
    KILN_TRY(c.require_equal(c.inputs[2].dims[0], weight.dims[0], "bias dim 0 and weight dim 0"));
  }
  Shape shape = x.dims;
  shape.back() = weight.dims[0];
  c.results = {make_type(dtype, std::move(shape))};
  return {};
}

Status decompose_linear(DecomposeContext &c) {
  ValueId x = c.node.inputs[0];
  const bool vector = c.type(x).rank() == 1;
  if (vector) {
    KILN_ASSIGN(x, c.add("unsqueeze", {x}, {{"dims", ints({0})}}));
  }
  KILN_ASSIGN(ValueId y, c.add("matmul", {x, c.node.inputs[1]}, {{"transpose_b", true}}));
  if (vector) {
    KILN_ASSIGN(y, c.add("squeeze", {y}, {{"dims", ints({0})}}));
  }
  if (c.node.inputs.size() == 3) {
    KILN_ASSIGN(y, c.add("add", {y, c.node.inputs[2]}));
  }
  c.results = {y};
  return {};
}

Status reference_linear(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &weight = *c.inputs[1];
  const int64_t n = weight.shape[0], k = weight.shape[1];
  const int64_t rows = count_of(std::span(x.shape).first(x.shape.size() - 1));
  return dispatch_wide(c.results[0], [&](auto zero, auto wide) {
    using T = decltype(zero);
    const ReadElements<T> bias(*c.inputs.back());
    return multiply<T, decltype(wide)>(c, {rows, n, k, k, 1, k, 1, {{0, 0}}}, [&](int64_t column) {
      return c.inputs.size() == 3 ? decltype(wide)(bias[static_cast<size_t>(column)]) : wide;
    });
  });
}

void samples_matmul(SampleSink &out) {
  const Dim b = sym("b"), m = sym("m"), n = sym("n");
  auto sample = [&](const char *name, Shape a, Shape b_shape, bool transpose_a = false, bool transpose_b = false,
                    std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(a)), f32(std::move(b_shape))},
                   .attrs = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
                   .sizes = std::move(sizes)});
  };
  sample("square", {17, 17}, {17, 17});
  sample("odd", {7, 33}, {33, 65});
  sample("large", {70, 130}, {130, 90});
  sample("large_transposed_both", {130, 70}, {90, 130}, true, true);
  sample("deep", {5, 600}, {600, 19});
  sample("transpose_a", {33, 7}, {33, 17}, true);
  sample("transpose_b", {7, 33}, {17, 33}, false, true);
  sample("row", {1, 65}, {65, 33});
  sample("column", {65, 33}, {33, 1});
  sample("outer", {17, 1}, {1, 33});
  sample("inner", {1, 65}, {65, 1});
  sample("no_depth", {5, 0}, {0, 7});
  sample("no_rows", {0, 5}, {5, 7});
  sample("batch", {3, 7, 5}, {3, 5, 9});
  sample("batch_of_rows", {3, 7, 33}, {33, 17});
  sample("batch_of_rows_ones", {2, 3, 7, 5}, {2, 1, 5, 9});
  sample("batch_of_columns", {7, 5}, {3, 5, 9});
  sample("batch_broadcast", {2, 1, 7, 5}, {3, 5, 9});
  sample("batch_transposed", {3, 5, 7}, {3, 9, 5}, true, true);
  sample("symbolic", {b, m, 33}, {b, 33, n}, false, false, {{"b", 2}, {"m", 17}, {"n", 7}});
  sample("symbolic_depth", {m, n}, {m, n}, false, true, {{"m", 9}, {"n", 65}});
  sample("symbolic_ones", {b, m, n}, {n, m}, false, false, {{"b", 1}, {"m", 1}, {"n", 1}});
  sample("symbolic_empty", {b, m, 5}, {5, 3}, false, false, {{"b", 2}, {"m", 0}});
  sample("vector_by_matrix", {33}, {33, 17});
  sample("matrix_by_vector", {17, 33}, {33});
  sample("vector_by_vector", {65}, {65});
  sample("vector_by_batch", {33}, {3, 33, 17});
  sample("batch_by_vector", {2, 3, 33}, {33});
  sample("vector_transposed_b", {33}, {17, 33}, false, true);
  sample("symbolic_vector", {m, n}, {n}, false, false, {{"m", 9}, {"n", 65}});
  for (const auto &[name, type] : {std::pair{"bytes", DType::i8}, std::pair{"unsigned_bytes", DType::u8}})
    out.push_back({.name = name,
                   .inputs = {make_type(type, {7, 300}), make_type(DType::i8, {300, 33})},
                   .int_low = type == DType::i8 ? -128 : 0,
                   .int_high = type == DType::i8 ? 128 : 256});
  for (const DType type : {DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64})
    out.push_back({.name = str_cat("wrapping_", name_of(type)),
                   .inputs = {make_type(type, {5, 1100}), make_type(type, {1100, 19})},
                   .int_low = dtype_info(type).is_signed ? i64_min / 4 : 0,
                   .int_high = i64_max / 4});
}

void samples_linear(SampleSink &out) {
  const Dim b = sym("b"), t = sym("t");
  out.push_back({.name = "bytes",
                 .inputs = {make_type(DType::i8, {b, 65}), make_type(DType::i8, {40, 65}), make_type(DType::i32, {40})},
                 .sizes = {{"b", 9}},
                 .int_low = -128,
                 .int_high = 128});
  out.push_back({.name = "unsigned_bytes",
                 .inputs = {make_type(DType::u8, {7, 65}), make_type(DType::i8, {40, 65})},
                 .int_low = 0,
                 .int_high = 256});
  out.push_back({.name = "plain", .inputs = {f32({7, 33}), f32({17, 33})}});
  out.push_back({.name = "bias", .inputs = {f32({7, 33}), f32({17, 33}), f32({17})}});
  out.push_back({.name = "vector", .inputs = {f32({33}), f32({17, 33}), f32({17})}});
  out.push_back({.name = "sequence", .inputs = {f32({2, 9, 65}), f32({40, 65}), f32({40})}});
  out.push_back({.name = "large", .inputs = {f32({70, 130}), f32({90, 130}), f32({90})}});
  out.push_back({.name = "no_rows", .inputs = {f32({0, 3}), f32({5, 3}), f32({5})}});
  out.push_back({.name = "one_column", .inputs = {f32({9, 33}), f32({1, 33}), f32({1})}});
  out.push_back({.name = "symbolic", .inputs = {f32({b, t, 32}), f32({64, 32})}, .sizes = {{"b", 2}, {"t", 7}}});
  out.push_back(
      {.name = "symbolic_one", .inputs = {f32({b, t, 32}), f32({64, 32}), f32({64})}, .sizes = {{"b", 1}, {"t", 1}}});
}

const Op matmul_records[] = {
    {{.name = "matmul",
      .doc = "The product of matrices; batch dims are broadcast. A vector is a row as a, a column as b, and the result "
             "lacks that dim. Of 8-bit integers in i32; wider ones wrap.",
      .args = {{"a", "[..., M, K] or [K]", numeric_types},
               {"b", "[..., K, N] or [K]; a's dtype, or i8 where a is i8 or u8", numeric_types, Arity::one,
                /*same_dtype=*/false}},
      .result_names = {"y"},
      .attrs = {flag("transpose_a", "a is [..., K, M]", false), flag("transpose_b", "b is [..., N, K]", false)},
      .infer = infer_matmul},
     {.lower = lower_matmul, .reference = reference_matmul, .gradient = by_rule("a, b"), .samples = samples_matmul}},

    {{.name = "linear",
      .doc = "x weight^T + bias, over the last dim of x. Of 8-bit integers in i32; wider ones wrap.",
      .args = {{"x", "[..., K]", numeric_types},
               {"weight", "[N, K]; x's dtype, or i8 where x is i8 or u8", numeric_types, Arity::one,
                /*same_dtype=*/false},
               {"bias", "[N], of the result's dtype", numeric_types, Arity::optional,
                /*same_dtype=*/false}},
      .result_names = {"y"},
      .infer = infer_linear},
     {.decompose = decompose_linear,
      .reference = reference_linear,
      .gradient = through_decomposition(),
      .samples = samples_linear}},
};

}  // namespace

std::span<const Op> matmul_ops() { return matmul_records; }

}  // namespace kiln::ops
