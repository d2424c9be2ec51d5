// Reshape and as_strided: the views whose maps take thought.
#include <algorithm>

#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

// Removes the dims that stand in both lists, which then have the same quotient of products.
void cancel(Shape &a, Shape &b) {
  for (size_t i = a.size(); i-- > 0;) {
    auto found = std::find(b.begin(), b.end(), a[i]);
    if (found == b.end() || found->is(0)) continue;
    b.erase(found);
    a.erase(a.begin() + static_cast<ptrdiff_t>(i));
  }
}

Status infer_reshape(InferContext &c) {
  const TensorType &x = c.inputs[0];
  Shape shape = c.attr("shape").dim_list();
  const auto unknown = std::find(shape.begin(), shape.end(), Dim(-1));
  if (unknown != shape.end()) {
    Shape from = x.dims, known = shape;
    known.erase(known.begin() + (unknown - shape.begin()));
    if (std::find(known.begin(), known.end(), Dim(-1)) != known.end())
      return c.fail("shape ", text_of(shape), " holds -1 more than once");
    cancel(from, known);
    const Dim divisor = product_of(known);
    if (divisor.is(0)) return c.fail("shape ", text_of(shape), ": -1 cannot be told beside a 0");
    *unknown = floor_div(product_of(from), divisor);
  }
  KILN_TRY(require_shape(c, shape));
  const Dim count = product_of(x.dims), wanted = product_of(shape);
  KILN_TRY(c.require_equal(count, wanted,
                           str_cat("the number of elements of ", x.text(), " and of shape ", text_of(shape))));
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

// The smallest (i, j) so that the first i dims of `a` and the first j of `b` have equal products; else all of both.
std::pair<size_t, size_t> first_group(std::span<const Dim> a, std::span<const Dim> b) {
  for (size_t dims = 2; dims < a.size() + b.size(); ++dims)
    for (size_t i = 1; i <= std::min(dims - 1, a.size()); ++i)
      if (const size_t j = dims - i; j <= b.size() && product_of(a.first(i)) == product_of(b.first(j))) return {i, j};
  return {a.size(), b.size()};
}

// The index of element number `linear`, in row-major order, of a tensor of dims `from`.
void append_index(std::vector<Expr> &index, Expr linear, std::span<const Dim> from) {
  std::vector<Expr> group(from.size());
  for (size_t d = from.size(); d-- > 1;) {
    group[d] = mod(linear, from[d]);
    linear = floor_div(linear, from[d]);
  }
  if (!from.empty()) group[0] = std::move(linear);
  index.insert(index.end(), group.begin(), group.end());
}

// Groups of dims with equal products are mapped on their own: (b, t, h*d) <-> (b, t, h, d) divides nothing but h*d. A
// dim of 1 has the index 0.
Status view_reshape(ViewContext &c) {
  std::span<const Dim> from = c.operand.dims, to = c.result.dims;
  std::span<const Expr> index = c.index;
  c.operand_index.clear();
  while (!from.empty()) {
    const auto [i, j] = first_group(from, to);
    Expr linear = 0;
    for (size_t d = 0; d < j; ++d)
      if (!to[d].is(1)) linear = linear * to[d] + index[d];
    append_index(c.operand_index, std::move(linear), from.first(i));
    from = from.subspan(i);
    to = to.subspan(j);
    index = index.subspan(j);
  }
  return {};
}

// ---- as_strided

Status infer_as_strided(InferContext &c) {
  const TensorType &x = c.inputs[0];
  const Shape &shape = c.attr("shape").dim_list(), &strides = c.attr("strides").dim_list();
  if (shape.size() != strides.size())
    return c.fail("shape has ", shape.size(), " dims, strides has ", strides.size(), ", expected as many");
  KILN_TRY(require_shape(c, shape));
  Dim first = c.attr("offset").dim(), last = first;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Dim way = (shape[d] - 1) * strides[d];
    first += min(way, 0);
    last += max(way, 0);
  }
  const Dim is_any = min(product_of(shape), 1);  // what has no elements reads none
  KILN_TRY(require_at_most(c, 0, is_any * first, "0 <= the first element by offset, shape and strides"));
  KILN_TRY(require_at_most(c, is_any * (last + 1), product_of(x.dims),
                           "elements up to the last by offset, shape and strides <= x's"));
  c.results = {make_type(x.dtype, shape)};
  return {};
}

Status view_as_strided(ViewContext &c) {
  const Shape &strides = c.attr("strides").dim_list();
  Expr linear = c.attr("offset").dim();
  for (size_t d = 0; d < strides.size(); ++d)
    if (!c.result.dims[d].is(1)) linear += c.index[d] * strides[d];
  append_index(c.operand_index, std::move(linear), c.operand.dims);
  return {};
}

void samples_as_strided(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  const auto sample = [&](const char *name, Shape x, Shape shape, Shape strides, Dim offset,
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(
        name, std::move(x),
        {{"shape", AttrValue(std::move(shape))}, {"strides", AttrValue(std::move(strides))}, {"offset", offset}},
        std::move(sizes)));
  };
  sample("windows", {17}, {5, 9}, {2, 1}, 0);
  sample("transposed", {5, 7}, {7, 5}, {1, 7}, 0);
  sample("part_of_three_dims", {3, 5, 7}, {2, 3, 4}, {35, 14, 2}, 3);
  sample("backwards", {3, 5}, {5, 3}, {-1, -5}, 14);
  sample("repeated", {5}, {3, 5}, {0, 1}, 0);
  sample("one_element", {3, 5}, {}, {}, 7);
  sample("of_a_scalar", {}, {3}, {0}, 0);
  sample("nothing", {3}, {0, 5}, {1, 4}, 9);
  sample("symbolic_diagonal", {n, n}, {n}, {n + 1}, 0, {{"n", 5}});
  sample("symbolic_rows", {n, m}, {floor_div(n, 2), m}, {2 * m, 1}, 0, {{"n", 7}, {"m", 3}});
  sample("symbolic_nothing", {n, m}, {n, 2}, {m, 1}, 0, {{"n", 0}, {"m", 3}});
}

// ---- samples of reshape, records

void samples_reshape(SampleSink &out) {
  const Dim b = sym("b"), t = sym("t");
  auto sample = [&](const char *name, Shape from, Shape to, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(from), {{"shape", AttrValue(std::move(to))}}, std::move(sizes)));
  };
  sample("flatten", {3, 5, 7}, {105});
  sample("split", {105}, {3, 5, 7});
  sample("regroup", {6, 35}, {10, 21});
  sample("ones", {1, 7, 1}, {7});
  sample("more_ones", {7}, {1, 7, 1, 1});
  sample("scalar", {1, 1}, {});
  sample("from_scalar", {}, {1});
  sample("infer", {6, 35}, {-1, 5});
  sample("empty", {0, 3}, {3, 0, 2});
  sample("split_heads", {b, t, 12}, {b, t, 3, 4}, {{"b", 2}, {"t", 7}});
  sample("merge_heads", {b, t, 3, 4}, {b, t, 12}, {{"b", 2}, {"t", 7}});
  sample("merge_batch", {b, t, 5}, {b * t, 5}, {{"b", 3}, {"t", 7}});
  sample("split_batch", {b * t, 5, t}, {b, t, 5, t}, {{"b", 3}, {"t", 7}});
  sample("infer_symbolic", {b, t, 12}, {b, -1}, {{"b", 3}, {"t", 7}});
  sample("symbolic_one", {b, t, 12}, {b * t, 3, 4}, {{"b", 1}, {"t", 1}});
  sample("symbolic_empty", {b, t, 12}, {b * t, 3, 4}, {{"b", 0}, {"t", 5}});
  sample("equal_at_the_call", {b, 12}, {t, 4}, {{"b", 2}, {"t", 6}});
  out.push_back({.name = "integers", .inputs = {i64({4, 6})}, .attrs = {{"shape", AttrValue(Shape{8, 3})}}});
}

const Op reshape_records[] = {
    {{.name = "reshape",
      .doc = "The same elements, in row-major order, in another shape.",
      .flags = op_flags::view,
      .args = {{"x", "any shape", any_type}},
      .result_names = {"y"},
      .attrs = {{.name = "shape",
                 .doc = "of the result; one -1 is told from the rest",
                 .kind = AttrKind::dim,
                 .is_list = true,
                 .required = true}},
      .infer = infer_reshape},
     {.view = view_reshape, .gradient = by_rule("x"), .samples = samples_reshape}},

    {{.name = "as_strided",
      .doc =
          "x's elements in row-major order, from number offset on, in steps of strides along each dim of the result. "
          "x is row-major whatever lies in memory: strides count elements of its shape.",
      .flags = op_flags::view,
      .args = {{"x", "any shape", any_type}},
      .result_names = {"y"},
      .attrs = {list("shape", "of the result", AttrKind::dim),
                list("strides", "how many elements of x apart neighbours along each dim are; 0 and less, too",
                     AttrKind::dim),
                {.name = "offset", .doc = "the element at index 0", .kind = AttrKind::dim, .fallback = Dim(0)}},
      .infer = infer_as_strided},
     {.view = view_as_strided, .gradient = by_rule("x"), .samples = samples_as_strided}},
};

}  // namespace

std::span<const Op> reshape_ops() { return reshape_records; }

}  // namespace kiln::ops
