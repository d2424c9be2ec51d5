// Products with one of several matrices, which a tensor tells: a mixture of experts.
#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

using kernel::ContractRole;
using kernel::Core;

// ---- indexed_matmul

Status infer_indexed_matmul(InferContext &c) {
  const TensorType &x = c.inputs[0], &weights = c.inputs[1];
  KILN_TRY(require_rank(c, 0, 3));
  KILN_TRY(require_rank(c, 1, 3));
  KILN_TRY(require_rank(c, 2, 1));
  KILN_TRY(c.require_equal(x.dims[0], c.inputs[2].dims[0], "x dim 0 and index dim 0"));
  KILN_TRY(c.require_equal(x.dims[2], weights.dims[1], "x dim 2 and weights dim 1"));
  c.results = {make_type(x.dtype, {x.dims[0], x.dims[1], weights.dims[2]})};
  return {};
}

// Neither operand is read where there is no such matrix.
Status lower_indexed_matmul(LowerContext &c) {
  const Expr k = c.reduce_axis(c.inputs[0].dims[2]), batch = c.axis(0);
  kernel::Contract &contract = c.compute.contract.emplace();
  contract.accumulator = c.result.dtype;
  const auto operand = [&](kernel::Body &to, uint16_t which, const std::function<std::vector<Expr>(Expr)> &index) {
    kernel::BodyBuilder body(to);
    const int matrix = body.convert(body.load(2, c.inputs[2].dtype, {batch}), DType::i64);
    const int valid = body.op(Core::logical_and, body.op(Core::ge, matrix, body.index(0)),
                              body.op(Core::lt, matrix, body.index(c.inputs[1].dims[0])));
    body.yield(body.load(which, c.result.dtype, index(Expr::value(static_cast<uint32_t>(matrix))), valid));
  };
  operand(contract.a, 0, [&](const Expr &) { return std::vector{batch, c.axis(1), k}; });
  operand(contract.b, 1, [&](const Expr &matrix) { return std::vector{matrix, k, c.axis(2)}; });
  c.compute.roles = {ContractRole::batch, ContractRole::m, ContractRole::n};
  return {};
}

// A reference kernel: each row of x by the matrix of weights that which(row) tells, to a row of y; 0 where there is
// none of that number.
template <class Which>
Status multiply_rows(const ReferenceContext &c, Which which) {
  const RefTensor &weights = *c.inputs[1];
  const int64_t matrices = weights.shape[0], depth = weights.shape[1], columns = weights.shape[2];
  const ReadElements<double> in(*c.inputs[0]), by(weights);
  const WriteElements<double> out(c.results[0]);
  return with_wide(*c.inputs[0], [&](auto zero) {
    using Wide = decltype(zero);
    const auto multiply = [&](int64_t row, int64_t matrix) {
      const std::vector<double> line = line_at(in, static_cast<size_t>(row * depth), 1, depth);
      for (int64_t column = 0; column < columns; ++column) {
        Wide sum = 0;
        for (int64_t k = 0; k < depth; ++k)
          sum += static_cast<Wide>(line[static_cast<size_t>(k)]) *
                 static_cast<Wide>(by[static_cast<size_t>((matrix * depth + k) * columns + column)]);
        out.set(static_cast<size_t>(row * columns + column), static_cast<double>(sum));
      }
    };
    const int64_t rows = columns > 0 ? c.results[0].size() / columns : 0;
    return c.for_ranges(rows, depth * columns, [&](int64_t begin, int64_t end) -> Status {
      for (int64_t row = begin; row < end; ++row)
        if (const int64_t matrix = which(row); matrix >= 0 && matrix < matrices) multiply(row, matrix);
      return {};
    });
  });
}

Status reference_indexed_matmul(ReferenceContext &c) {
  const int64_t rows = c.inputs[0]->shape[1];
  const ReadElements<int64_t> index(*c.inputs[2]);
  return multiply_rows(c, [&](int64_t row) { return index[static_cast<size_t>(row / rows)]; });
}

void samples_indexed_matmul(SampleSink &out) {
  const Dim b = sym("b"), m = sym("m");
  const auto sample = [&](const char *name, Shape x, Shape weights, DType type = DType::i64,
                          std::map<std::string, int64_t> sizes = {}) {
    const Dim count = x[0];
    out.push_back({.name = name,
                   .inputs = {f32(std::move(x)), f32(std::move(weights)), make_type(type, {count})},
                   .sizes = std::move(sizes),
                   .int_low = -1,
                   .int_high = 5});
  };
  sample("rows", {9, 1, 17}, {4, 17, 9});
  sample("matrices", {5, 7, 9}, {4, 9, 33}, DType::i32);
  sample("no_depth", {3, 2, 0}, {4, 0, 5});
  sample("no_matrices", {3, 2, 3}, {0, 3, 5});
  sample("nothing", {0, 2, 3}, {2, 3, 5});
  sample("symbolic", {b, m, 5}, {4, 5, 3}, DType::i64, {{"b", 6}, {"m", 3}});
}

// ---- grouped_matmul

Status infer_grouped_matmul(InferContext &c) {
  const TensorType &x = c.inputs[0], &weights = c.inputs[1];
  KILN_TRY(require_rank(c, 0, 2));
  KILN_TRY(require_rank(c, 1, 3));
  KILN_TRY(require_rank(c, 2, 1));
  KILN_TRY(c.require_equal(x.dims[1], weights.dims[1], "x dim 1 and weights dim 1"));
  KILN_TRY(c.require_equal(weights.dims[0], c.inputs[2].dims[0], "weights dim 0 and offsets dim 0"));
  KILN_TRY(require_at_most(c, 1, weights.dims[0], "1 <= weights dim 0"));
  c.results = {make_type(x.dtype, {x.dims[0], weights.dims[2]})};
  return {};
}

// How many rows are multiplied at a time: about as many as a group has.
int64_t rows_of_block(const Dim &rows, const Dim &groups) {
  constexpr int64_t usual = 16, most = 64;
  if (!rows.is_integer() || !groups.is_integer()) return usual;
  return std::clamp<int64_t>(rows.integer() / groups.integer(), 1, most);
}

// The rows of a group are cut into blocks, the last of which may lack some; each is a product with one matrix. So all
// cost what one product of as many rows does, and a block a group.
Status decompose_grouped_matmul(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0], weights = c.node.inputs[1], given = g.convert(c.node.inputs[2], DType::i64);
  KILN_TRY(g.give({}));
  const Dim rows = c.type(x).dims[0], groups = c.type(weights).dims[0];
  const int64_t size = rows_of_block(rows, groups);
  const Dim blocks = floor_div(rows + min(groups, rows) * (size - 1), size);
  const auto count = [&](const Dim &dim) { return g.count(given, dim); };
  const auto numbers = [&](const Dim &dim) { return g("iota", {}, {{"shape", AttrValue(Shape{dim})}}); };
  const auto within = [&](ValueId index, const Dim &dim) {
    return g("maximum", {g("minimum", {index, count(dim - 1)}), count(0)});
  };
  const auto at = [&](ValueId table, ValueId index, const Dim &dim) {
    return g("index_select", {table, within(index, dim)}, {{"dim", 0}});
  };
  const auto wide = [&](ValueId index, int64_t dim) { return g("unsqueeze", {index}, {{"dims", ints({dim})}}); };
  // Of each group: where it ends and begins, and the number of its first block.
  const ValueId latest = g("cummax", {g("minimum", {given, count(rows)})}, {{"dim", 0}});
  const ValueId ends = g("maximum", {latest, count(0)});
  const ValueId before = g("pad", {ends}, {{"low", ints({1})}, {"high", ints({-1})}});
  const ValueId of_group = g("div", {g("add", {g("sub", {ends, before}), count(size - 1)}), count(size)});
  const ValueId blocks_end = g("cumsum", {of_group}, {{"dim", 0}}), first = g("sub", {blocks_end, of_group});
  // Of each block: its group, and its rows.
  const ValueId block = numbers(blocks), owner = g("searchsorted", {blocks_end, block}, {{"right", true}});
  const ValueId past = g("sub", {block, at(first, owner, groups)});
  const ValueId start = g("add", {at(before, owner, groups), g("mul", {past, count(size)})});
  const ValueId row = g("add", {wide(start, 1), numbers(size)});
  const ValueId all_rows = g("reshape", {row}, {{"shape", AttrValue(Shape{blocks * size})}});
  const ValueId own =
      g("reshape", {at(x, all_rows, rows)}, {{"shape", AttrValue(Shape{blocks, size, c.type(x).dims[1]})}});
  const ValueId products = g("indexed_matmul", {own, weights, owner});
  KILN_TRY(g.give({}));
  const Dim columns = c.type(weights).dims[2];
  const ValueId flat = g("reshape", {products}, {{"shape", AttrValue(Shape{blocks * size, columns})}});
  // Of each row: its group, and which row of the products it is.
  const ValueId number = numbers(rows), group = g("searchsorted", {ends, number}, {{"right", true}});
  const ValueId place =
      g("add", {g("mul", {at(first, group, groups), count(size)}), g("sub", {number, at(before, group, groups)})});
  const ValueId is_in_one = wide(g("lt", {group, count(groups)}), 1);
  const ValueId y = at(flat, place, blocks * size);
  return g.give({g("where", {is_in_one, y, g.number(y, 0)})});
}

Status reference_grouped_matmul(ReferenceContext &c) {
  const ReadElements<int64_t> ends(*c.inputs[2]);
  const int64_t groups = c.inputs[2]->size();
  return multiply_rows(c, [&](int64_t row) {
    int64_t group = 0;  // the first that ends behind it
    while (group < groups && ends[static_cast<size_t>(group)] <= row) ++group;
    return group;
  });
}

void samples_grouped_matmul(SampleSink &out) {
  const Dim m = sym("m"), g = sym("g");
  const auto sample = [&](const char *name, Shape x, Shape weights, std::vector<int64_t> ends,
                          std::map<std::string, int64_t> sizes = {}) {
    const auto count = static_cast<int64_t>(ends.size());
    out.push_back(
        {.name = name, .inputs = {f32(std::move(x)), f32(weights), i64({weights[0]})}, .sizes = std::move(sizes)});
    out.back().given = {{2, i64_data({count}, ends)}};
  };
  sample("groups", {17, 9}, {3, 9, 5}, {4, 4, 17});
  sample("rows_past_the_last", {9, 33}, {2, 33, 17}, {3, 7});
  sample("one_group", {7, 5}, {1, 5, 3}, {7});
  sample("one_row", {1, 16}, {4, 16, 8}, {0, 0, 1, 1});
  sample("no_rows", {0, 3}, {2, 3, 5}, {0, 0});
  sample("no_depth", {3, 0}, {2, 0, 5}, {1, 3});
  sample("symbolic", {m, 7}, {g, 7, 3}, {2, 5, 5}, {{"m", 6}, {"g", 3}});
  sample("falling_ends", {9, 3}, {4, 3, 2}, {5, 3, -1, 20});
  sample("narrow_ends", {5, 3}, {2, 3, 4}, {0, 0});
  out.back().inputs[2] = make_type(DType::i32, {2});
  out.back().given = {{2, tensor_of<int32_t>(DType::i32, {2}, {2, 5})}};
}

const Op grouped_matmul_records[] = {
    {{.name = "indexed_matmul",
      .doc = "y[b] = x[b] weights[index[b]]: products with matrices that are picked; 0 where there is no such matrix.",
      .args = {{"x", "[B, M, K]", float_types},
               {"weights", "[G, K, N]", float_types},
               {"index", "[B], which matrix", index_types, Arity::one, /*same_dtype=*/false}},
      .result_names = {"y"},
      .infer = infer_indexed_matmul},
     {.lower = lower_indexed_matmul,
      .reference = reference_indexed_matmul,
      .gradient = by_rule("x, weights"),
      .samples = samples_indexed_matmul}},

    {{.name = "grouped_matmul",
      .doc =
          "Each row of x times the matrix of its group: rows offsets[g - 1] to offsets[g] are of group g, of which the "
          "first begins at 0. What comes after the last is 0. An offset below one before is that of an empty group.",
      .args = {{"x", "[M, K]", float_types},
               {"weights", "[G, K, N], at least one", float_types},
               {"offsets", "[G], where each group ends", index_types, Arity::one,
                /*same_dtype=*/false}},
      .result_names = {"y"},
      .infer = infer_grouped_matmul},
     {.decompose = decompose_grouped_matmul,
      .reference = reference_grouped_matmul,
      .gradient = through_decomposition(),
      .samples = samples_grouped_matmul}},
};

}  // namespace

std::span<const Op> grouped_matmul_ops() { return grouped_matmul_records; }

}  // namespace kiln::ops
