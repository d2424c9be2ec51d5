// Determinants.
#include "runtime/ops/family.h"
#include "runtime/ops/loop.h"

namespace kiln::ops {
namespace {

Status infer_det(InferContext &c) {
  const TensorType &x = c.inputs[0];
  if (x.rank() < 2 || !x.dims.back().is_integer())
    return c.fail("x is ", x.text(), ", expected [..., n, n] with a known n");
  KILN_TRY(c.require_equal(x.dims[x.rank() - 2], x.dims.back(), "the last two dims of x"));
  c.results = {make_type(x.dtype, Shape(x.dims.begin(), x.dims.end() - 2))};
  return {};
}

// Column by column: of the rows that are not used up the one with the largest element is taken, and what the others
// have of it is taken off them. No row is moved: the sign is that of how many unused rows come before. Of `x`: the
// column's number, the product so far [batch], which rows are used up [batch, n], the matrices [batch, n, n].
std::vector<ValueId> one_column(Composer &g, const std::vector<ValueId> &x, const Dim &n) {
  const ValueId column = x[0], product = x[1], used = x[2], a = x[3];
  const ValueId zero = g.number(a, 0), place = g("iota", {}, {{"shape", AttrValue(Shape{n})}});
  const auto spread = [&](ValueId value, int64_t dim) { return g("unsqueeze", {value}, {{"dims", ints({dim})}}); };
  const auto where_one = [&](ValueId is, ValueId of, int64_t dim) {
    return g("sum", {g("where", {is, of, zero})}, {{"dims", ints({dim})}});
  };
  const ValueId elements = where_one(g("eq", {place, column}), a, -1);
  const ValueId sizes = g("where", {used, g.number(a, -1), g("abs", {elements})});
  const ValueId taken = spread(g("argmax", {sizes}, {{"dim", -1}}), -1);
  const ValueId is_taken = g("eq", {place, taken});
  const ValueId pivot = where_one(is_taken, elements, -1), row = where_one(spread(is_taken, -1), a, -2);
  const ValueId before = g("and", {g("lt", {place, taken}), g("not", {used})});
  const ValueId count = g("sum", {before}, {{"dims", ints({-1})}, {"dtype", DType::i64}});
  const ValueId odd = g("eq", {g("remainder", {count, g.number(count, 2)}), g.number(count, 1)});
  const ValueId signed_pivot = g("where", {odd, g("neg", {pivot}), pivot});
  const ValueId done = g("or", {used, is_taken});
  const ValueId wide_pivot = spread(pivot, -1);
  const ValueId part =
      g("where", {g("or", {done, g("eq", {wide_pivot, zero})}), zero, g("div", {elements, wide_pivot})});
  const ValueId rest = g("sub", {a, g("mul", {spread(part, -1), spread(row, -2)})});
  return {g("add", {column, g.number(column, 1)}), g("mul", {product, signed_pivot}), done, rest};
}

Status decompose_det(DecomposeContext &c) {
  const TensorType x = c.type(c.node.inputs[0]);
  const Shape batch(x.dims.begin(), x.dims.end() - 2);
  const Dim n = x.dims.back(), count = product_of(batch), inner = loop_dim(count, "batch");
  Composer g(c);
  if (n.is(0)) return g.give({g.full(x.dtype, batch, 1)});
  const std::vector<ValueId> operands = {g.full(DType::i64, {}, 0), g.full(x.dtype, {count}, 1),
                                         g.full(DType::boolean, {count, n}, 0),
                                         g("reshape", c.node.inputs, {{"shape", AttrValue(Shape{count, n, n})}})};
  KILN_TRY(g.give({}));
  const std::vector<TensorType> types = {i64({}), make_type(x.dtype, {inner}), boolean({inner, n}),
                                         make_type(x.dtype, {inner, n, n})};
  KILN_ASSIGN(
      const ValueId turns,
      loop(
          c, operands, types, 4,
          [&](Composer &h, const std::vector<ValueId> &state) { return h("lt", {state[0], h.count(state[0], n)}); },
          [&](Composer &h, const std::vector<ValueId> &state) { return one_column(h, state, n); }));
  Composer h(c);
  return h.give({h("reshape", {{turns.node, 1}}, {{"shape", AttrValue(batch)}})});
}

// The product of the pivots of an LU decomposition, whose rows change places.
Status reference_det(ReferenceContext &c) {
  const auto n = static_cast<size_t>(c.inputs[0]->shape.back());
  const ReadElements<double> in(*c.inputs[0]);
  return with_wide(*c.inputs[0], [&](auto zero) {
    using Wide = decltype(zero);
    const auto determinant = [&](int64_t k) {
      std::vector<Wide> a(n * n);
      for (size_t e = 0; e < a.size(); ++e) a[e] = in[static_cast<size_t>(k) * a.size() + e];
      Wide product = 1;
      for (size_t column = 0; column < n; ++column) {
        size_t best = column;
        for (size_t row = column; row < n && !std::isnan(a[best * n + column]); ++row)
          if (!(std::abs(a[row * n + column]) <= std::abs(a[best * n + column]))) best = row;
        if (best != column) {
          for (size_t j = 0; j < n; ++j) std::swap(a[best * n + j], a[column * n + j]);
          product = -product;
        }
        const Wide pivot = a[column * n + column];
        product *= pivot;
        for (size_t row = column + 1; row < n && pivot != 0; ++row) {
          const Wide part = a[row * n + column] / pivot;
          for (size_t j = column; j < n; ++j) a[row * n + j] -= part * a[column * n + j];
        }
      }
      return product;
    };
    return make_each<double>(c, determinant, static_cast<int64_t>(n * n * n));
  });
}

void samples_det(SampleSink &out) {
  const auto sample = [&](const char *name, Shape x, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), {}, std::move(sizes)));
  };
  sample("one", {3, 1, 1});
  sample("two", {2, 2});
  sample("batch", {2, 3, 4, 4});
  sample("seven", {5, 7, 7});
  sample("of_nothing", {3, 0, 0});
  sample("no_batch", {0, 3, 3});
  sample("symbolic", {sym("b"), 3, 3}, {{"b", 5}});
  sample("symbolic_batch", {sym("b"), sym("t"), 2, 2}, {{"b", 2}, {"t", 3}});
  sample("edges", {4, 3, 3});
  out.back().given = {{0, f32_data({4, 3, 3}, {0, 1, 0, 1, 0,   0, 0, 0, 1,      // rows change places
                                               1, 2, 3, 2, 4,   6, 1, 0, 1,      // singular
                                               0, 0, 0, 0, 0,   0, 0, 0, 0,      // nothing but 0
                                               1, 0, 0, 0, NAN, 0, 0, 0, 1})}};  // NaN
}

const Op determinant_records[] = {
    {{.name = "det",
      .doc = "The determinants of matrices, by elimination with the largest element of each column; 1 where n is 0.",
      .args = {{"x", "[..., n, n] with a known n", float_types}},
      .result_names = {"y"},
      .infer = infer_det},
     {.decompose = decompose_det, .reference = reference_det, .gradient = by_rule("x"), .samples = samples_det}},
};

}  // namespace

std::span<const Op> determinant_ops() { return determinant_records; }

}  // namespace kiln::ops
