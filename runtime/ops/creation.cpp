// Ops that make tensors: from a number, from an index, from another tensor's elements.
#include <bit>
#include <tuple>

#include "runtime/ops/family.h"
#include "runtime/ops/filling.h"

namespace kiln::ops {
namespace {

Status infer_full(InferContext &c) {
  const DType dtype = c.attr("dtype").dtype();
  KILN_TRY(require_dtype(c, dtype, any_type));
  KILN_TRY(require_filling(c, dtype));
  KILN_TRY(require_shape(c, c.attr("shape").dim_list()));
  c.results = {make_type(dtype, c.attr("shape").dim_list())};
  return {};
}

Status infer_size(InferContext &c) {
  KILN_TRY(require_dtype(c, c.attr("dtype").dtype(), numeric_types));
  c.results = {make_type(c.attr("dtype").dtype(), {})};
  return {};
}

Status infer_iota(InferContext &c) {
  const Shape &shape = c.attr("shape").dim_list();
  KILN_TRY(require_dtype(c, c.attr("dtype").dtype(), numeric_types));
  KILN_TRY(require_shape(c, shape));
  KILN_TRY(c.axis(c.attr("dim").i64(), shape.size(), "dim").take_status());
  c.results = {make_type(c.attr("dtype").dtype(), shape)};
  return {};
}

Status infer_copy(InferContext &c) {
  if (c.inputs[0].rank() != c.inputs[1].rank())
    return c.fail("dest is ", c.inputs[0].text(), ", src is ", c.inputs[1].text(), "; expected equal shapes");
  for (size_t d = 0; d < c.inputs[0].rank(); ++d)
    KILN_TRY(c.require_equal(c.inputs[0].dims[d], c.inputs[1].dims[d], str_cat("dim ", d, " of dest and src")));
  return infer_same(c);
}

void samples_full(SampleSink &out) {
  auto full = [&](const char *name, double value, DType dtype, Shape shape, std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .attrs = {{"value", value}, {"dtype", dtype}, {"shape", AttrValue(std::move(shape))}},
                   .sizes = std::move(sizes)});
  };
  full("scalar", 0.1, DType::f32, {});
  full("matrix", -3.5, DType::f32, {7, 5});
  full("empty", 1, DType::f32, {3, 0});
  full("infinite", -infinity, DType::f32, {17});
  full("beyond_bytes", 1e9, DType::f32, {3});
  full("integer", -4, DType::i64, {2, 3});
  for (auto [name, digits, dtype] : {std::tuple{"longest", "-9223372036854775807", DType::i64},
                                     std::tuple{"longest_unsigned", "18446744073709551615", DType::u64}})
    out.push_back({.name = name, .attrs = {{"exact", digits}, {"dtype", dtype}, {"shape", AttrValue(Shape{5})}}});
  full("boolean", 1, DType::boolean, {33});
  full("symbolic", 2, DType::f32, {sym("n"), 2 * sym("n") + 1}, {{"n", 5}});
}

void samples_iota(SampleSink &out) {
  out.push_back({.name = "vector", .attrs = {{"shape", AttrValue(Shape{17})}}});
  out.push_back({.name = "rows", .attrs = {{"shape", AttrValue(Shape{5, 7})}, {"dim", 0}}});
  out.push_back(
      {.name = "columns_f32", .attrs = {{"shape", AttrValue(Shape{5, 7})}, {"dim", -1}, {"dtype", DType::f32}}});
  out.push_back({.name = "empty", .attrs = {{"shape", AttrValue(Shape{0})}}});
  out.push_back({.name = "symbolic",
                 .attrs = {{"shape", AttrValue(Shape{2, sym("n")})}, {"dim", 1}, {"dtype", DType::f32}},
                 .sizes = {{"n", 33}}});
}

const Op creation_records[] = {
    {{.name = "full",
      .doc = "A tensor whose elements are all one number.",
      .flags = op_flags::moves,
      .result_names = {"y"},
      .attrs = {{.name = "value", .doc = "the number", .kind = AttrKind::f64, .fallback = 0.0},
                exact_attr(),
                {.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .required = true},
                {.name = "shape", .doc = "of the result", .kind = AttrKind::dim, .is_list = true, .required = true}},
      .infer = infer_full},
     {.lower = [](LowerContext &c) -> Status {
        c.body.yield(c.body.constant_bits(c.result.dtype, *filling(c.attrs, c.result.dtype)));
        return {};
      },
      .reference = [](ReferenceContext &c) -> Status {
        const uint64_t number = *filling(c.attrs, c.results[0].dtype);
        return dispatch(c.results[0], [&](auto zero) {
          using T = decltype(zero);
          return make_each<T>(c, [&](int64_t) { return std::bit_cast<T>(number); });
        });
      },
      .gradient = takes_no_floats,
      .samples = samples_full}},

    {{.name = "size",
      .doc = "A dimension's value as a scalar tensor: how arithmetic learns of a symbolic size.",
      .flags = op_flags::moves,
      .result_names = {"y"},
      .attrs = {{.name = "value", .doc = "an expression over symbols", .kind = AttrKind::dim, .required = true},
                {.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .fallback = DType::i64}},
      .infer = infer_size},
     {.lower = [](LowerContext &c) -> Status {
        c.body.yield(c.body.convert(c.body.index(c.attr("value").dim()), c.result.dtype));
        return {};
      },
      .reference = [](ReferenceContext &c) -> Status {
        WriteAny(c.results[0]).set(0, c.attr("value").dim().integer());
        return {};
      },
      .gradient = takes_no_floats,
      .samples =
          [](SampleSink &out) {
            out.push_back({.name = "literal", .attrs = {{"value", Dim(12)}}});
            out.push_back({.name = "floats", .attrs = {{"value", Dim(-3)}, {"dtype", DType::f32}}});
            out.push_back({.name = "symbolic",
                           .attrs = {{"value", sym("n") - 2 * sym("m")}, {"dtype", DType::f32}},
                           .sizes = {{"n", 3}, {"m", 7}}});
          }}},

    {{.name = "iota",
      .doc = "The index along one dim: 0, 1, 2, ...",
      .flags = op_flags::moves,
      .result_names = {"y"},
      .attrs = {{.name = "shape", .doc = "of the result", .kind = AttrKind::dim, .is_list = true, .required = true},
                {.name = "dim", .doc = "the dim that counts", .kind = AttrKind::i64, .fallback = 0},
                {.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .fallback = DType::i64}},
      .infer = infer_iota},
     {.lower = [](LowerContext &c) -> Status {
        const size_t dim = dim_of(c, c.result.rank());
        c.body.yield(c.body.convert(c.body.index(c.axis(dim)), c.result.dtype));
        return {};
      },
      .reference = [](ReferenceContext &c) -> Status {
        RefTensor &y = c.results[0];
        std::vector<int64_t> strides(y.shape.size(), 0);
        strides[dim_of(c, strides.size())] = 1;
        const WriteAny out(y);
        return walk_in_ranges<1>(c, y.shape, {strides}, [&](size_t k, auto at) { out.set(k, at[0]); });
      },
      .gradient = takes_no_floats,
      .samples = samples_iota}},

    {{.name = "clone",
      .doc = "The same elements in memory of their own.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type}},
      .result_names = {"y"},
      .infer = infer_same},
     {.lower = [](LowerContext &c) -> Status {
        c.body.yield(c.load(0));
        return {};
      },
      .reference = [](ReferenceContext &c) { return copy_broadcast(c, *c.inputs[0]); },
      .gradient = by_rule("x"),
      .samples =
          [](SampleSink &out) {
            out.push_back({.name = "f32", .inputs = {f32({3, 65})}});
            out.push_back({.name = "i64", .inputs = {i64({7})}});
            out.push_back({.name = "bool", .inputs = {boolean({sym("n"), 3})}, .sizes = {{"n", 5}}});
            out.push_back({.name = "empty", .inputs = {f32({0, 3})}});
            out.push_back({.name = "scalar", .inputs = {f32({})}});
          }}},

    {{.name = "copy_",
      .doc = "Writes src into the graph input dest: the one mutation, allowed only as an epilogue.",
      .flags = op_flags::mutates,
      .args = {{"dest", "a graph input", any_type}, {"src", "of dest's shape", any_type}},
      .result_names = {"y"},
      .infer = infer_copy},
     {.lower = [](LowerContext &c) -> Status {
        c.body.yield(c.load(1));
        return {};
      },
      .reference = [](ReferenceContext &c) { return copy_broadcast(c, *c.inputs[1]); },
      .gradient = by_rule("src"),
      .samples =
          [](SampleSink &out) {
            out.push_back({.name = "matrix", .inputs = {f32({3, 5}), f32({3, 5})}});
            out.push_back({.name = "symbolic", .inputs = {i64({sym("n")}), i64({sym("n")})}, .sizes = {{"n", 7}}});
          }}},
};

}  // namespace

std::span<const Op> creation_ops() { return creation_records; }

}  // namespace kiln::ops
