// Reshape: the view whose map takes thought.
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
    std::vector<Expr> group(i);
    for (size_t d = i; d-- > 1;) {
      group[d] = mod(linear, from[d]);
      linear = floor_div(linear, from[d]);
    }
    group[0] = linear;
    c.operand_index.insert(c.operand_index.end(), group.begin(), group.end());
    from = from.subspan(i);
    to = to.subspan(j);
    index = index.subspan(j);
  }
  return {};
}

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

const Op records[] = {
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
};

}  // namespace

std::span<const Op> reshape_ops() { return records; }

}  // namespace kiln::ops
