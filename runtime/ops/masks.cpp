// Ops that keep or mark what stands at certain indices.
#include "runtime/ops/elementwise.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// Further off, all elements are on one side.
int64_t diagonal_of(const AttrMap &attrs) {
  return std::clamp(attrs.find("diagonal")->second.i64(), -farthest, farthest);
}

// Keeps elements on one side of the diagonal `diagonal`, 0 in place of the others.
template <Core keeps>
Status lower_triangle(LowerContext &c) {
  const size_t rank = c.result.rank();
  kernel::BodyBuilder &body = c.body;
  const int column = body.index(c.axis(rank - 1)), last = body.index(c.axis(rank - 2) + diagonal_of(c.attrs));
  body.yield(body.op(Core::select, body.op(keeps, column, last), c.load(0), body.constant(c.result.dtype, 0)));
  return {};
}
template <bool is_lower>
Status reference_triangle(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const int64_t rows = x.shape[x.shape.size() - 2], columns = x.shape.back(), diagonal = diagonal_of(c.attrs);
  return dispatch(x, [&](auto zero) {
    const ReadElements<decltype(zero)> in(x);
    return make_each<decltype(zero)>(c, [&](int64_t k) {
      const int64_t row = k / columns % rows, column = k % columns;
      const bool keeps = is_lower ? column <= row + diagonal : column >= row + diagonal;
      return keeps ? in[static_cast<size_t>(k)] : zero;
    });
  });
}
Status infer_triangle(InferContext &c) {
  if (c.inputs[0].rank() < 2) return c.fail("x is ", c.inputs[0].text(), ", expected at least 2 dims");
  return infer_same(c);
}

Status infer_one_hot(InferContext &c) {
  KILN_TRY(require_dtype(c, c.attr("dtype").dtype(), comparable_types));
  Shape shape = c.inputs[0].dims;
  shape.push_back(c.attr("classes").dim());
  KILN_TRY(require_at_most(c, 0, shape.back(), "0 <= classes"));
  c.results = {make_type(c.attr("dtype").dtype(), std::move(shape))};
  return {};
}
Status lower_one_hot(LowerContext &c) {
  std::vector<Expr> at = c.axes();
  const Expr column = at.back(), classes = c.result.dims.back();
  at.pop_back();
  kernel::BodyBuilder &body = c.body;
  const int index = body.convert(c.load(0, std::move(at)), DType::i64);
  const int is_class = body.op(Core::in_range, index, body.index(classes));
  const int is_here = body.op(Core::logical_and, is_class, body.op(Core::eq, index, body.index(column)));
  body.yield(body.convert(is_here, c.result.dtype));
  return {};
}
Status reference_one_hot(ReferenceContext &c) {
  RefTensor &y = c.results[0];
  const int64_t classes = y.shape.back();
  if (classes == 0) return {};
  const ReadElements<int64_t> indices(*c.inputs[0]);
  const WriteAny out(y);  // zeros until then
  KILN_TRY(require_in_range(c, *c.inputs[0], classes));
  return c.for_ranges(c.inputs[0]->size(), 1, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t k = begin; k < end; ++k)
      out.set(static_cast<size_t>(k * classes + indices[static_cast<size_t>(k)]), 1);
    return {};
  });
}

void samples_triangle(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  add_sample(out, "square", {17, 17}, {});
  add_sample(out, "wide", {7, 33}, {{"diagonal", 2}});
  add_sample(out, "tall", {33, 7}, {{"diagonal", -3}});
  add_sample(out, "batch", {2, 3, 5, 5}, {{"diagonal", 1}});
  add_sample(out, "far", {5, 5}, {{"diagonal", 9}});
  add_sample(out, "empty", {0, 5}, {});
  add_sample(out, "symbolic", {n, m}, {}, {{"n", 9}, {"m", 5}});
  out.push_back({.name = "nan_in_the_other_half",
                 .inputs = {f32({2, 2})},
                 .given = {{0, f32_data({2, 2}, {1.f, NAN, INFINITY, 2.f})}}});
}
void samples_one_hot(SampleSink &out) {
  const auto one_hot = [&](const char *name, TensorType x, Dim classes, DType dtype,
                           std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {std::move(x)},
                   .attrs = {{"classes", std::move(classes)}, {"dtype", dtype}},
                   .sizes = std::move(sizes),
                   .int_low = 0,
                   .int_high = 5});
  };
  one_hot("vector", i64({33}), 5, DType::i64);
  one_hot("matrix", i64({3, 7}), 9, DType::f32);
  one_hot("scalar", i64({}), 5, DType::boolean);
  one_hot("narrow_index", make_type(DType::i32, {17}), 6, DType::f16);
  one_hot("empty", i64({0}), 5, DType::u8);
  one_hot("symbolic", i64({sym("n")}), sym("c"), DType::i32, {{"n", 5}, {"c", 7}});
}
Op triangle(std::string_view name, std::string_view doc, OpMeaning meaning) {
  return moving(name, doc, "at least 2 dims",
                {{.name = "diagonal",
                  .doc = "the last that is kept: 0 the main one, above it if positive",
                  .kind = AttrKind::i64,
                  .fallback = 0}},
                infer_triangle, meaning);
}

const Op masks_records[] = {
    triangle("tril", "The lower triangles of matrices, the last two dims; 0 above.",
             {.lower = lower_triangle<Core::le>, .reference = reference_triangle<true>, .samples = samples_triangle}),
    triangle("triu", "The upper triangles of matrices, the last two dims; 0 below.",
             {.lower = lower_triangle<Core::ge>, .reference = reference_triangle<false>, .samples = samples_triangle}),
    {{.name = "one_hot",
      .doc = "1 where the index along a new last dim is x, else 0; an index out of range is an error of the call.",
      .flags = op_flags::moves,
      .args = {{"x", "indices, any shape", index_types}},
      .result_names = {"y"},
      .attrs = {{.name = "classes", .doc = "the size of the new dim", .kind = AttrKind::dim, .required = true},
                {.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .fallback = DType::i64}},
      .infer = infer_one_hot},
     {.lower = lower_one_hot, .reference = reference_one_hot, .gradient = takes_no_floats, .samples = samples_one_hot}},
};

}  // namespace

std::span<const Op> masks_ops() { return masks_records; }

}  // namespace kiln::ops
