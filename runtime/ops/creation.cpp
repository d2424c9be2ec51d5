// Ops that make tensors: from a number, from an index, from another tensor's elements.
#include <cmath>

#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

using kernel::Core;

Status infer_full(InferContext &c) {
  const DType dtype = c.attr("dtype").dtype();
  const double value = c.attr("value").f64();
  KILN_TRY(require_dtype(c, dtype, any_type));
  if (dtype == DType::i64 && (std::trunc(value) != value || std::abs(value) > 0x1p53))
    return c.fail("value is ", value, ", expected an integer of at most 53 bits for dtype i64");
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

Status infer_convert(InferContext &c) {
  KILN_TRY(require_dtype(c, c.attr("dtype").dtype(), any_type));
  c.results = {make_type(c.attr("dtype").dtype(), c.inputs[0].dims)};
  return {};
}

Status infer_copy(InferContext &c) {
  if (c.inputs[0].rank() != c.inputs[1].rank())
    return c.fail("dest is ", c.inputs[0].text(), ", src is ", c.inputs[1].text(), "; expected equal shapes");
  for (size_t d = 0; d < c.inputs[0].rank(); ++d)
    KILN_TRY(c.require_equal(c.inputs[0].dims[d], c.inputs[1].dims[d], str_cat("dim ", d, " of dest and src")));
  return infer_same(c);
}

void fill(RefTensor &t, double value) {
  if (t.is_float())
    std::fill(t.f.begin(), t.f.end(), value);
  else
    std::fill(t.i.begin(), t.i.end(), t.dtype == DType::boolean ? value != 0 : static_cast<int64_t>(value));
}

int64_t saturate(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return i64_max;
  if (value <= -0x1p63) return i64_min;
  return static_cast<int64_t>(value);
}

Status reference_convert(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &out = c.results[0];
  for (int64_t k = 0; k < out.size(); ++k) {
    const auto at = static_cast<size_t>(k);
    if (out.is_float())
      out.f[at] = x.is_float() ? x.f[at] : static_cast<double>(x.i[at]);
    else if (out.dtype == DType::boolean)
      out.i[at] = x.is_float() ? x.f[at] != 0 : x.i[at] != 0;
    else
      out.i[at] = x.is_float() ? saturate(x.f[at]) : x.i[at];
  }
  return {};
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
  full("integer", -4, DType::i64, {2, 3});
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

void samples_convert(SampleSink &out) {
  out.push_back(
      {.name = "f32_to_i64", .inputs = {f32({65})}, .attrs = {{"dtype", DType::i64}}, .low = -40, .high = 40});
  out.push_back({.name = "f32_to_i64_edges",
                 .inputs = {f32({8})},
                 .attrs = {{"dtype", DType::i64}},
                 .given = {{0, f32_data({8}, {1e30f, -1e30f, INFINITY, -INFINITY, NAN, -0.9f, 0.9f, -1.5f})}}});
  out.push_back({.name = "i64_to_f32", .inputs = {i64({3, 7})}, .attrs = {{"dtype", DType::f32}}});
  out.push_back({.name = "i64_to_f32_large",
                 .inputs = {i64({4})},
                 .attrs = {{"dtype", DType::f32}},
                 .given = {{0, i64_data({4}, {i64_max, i64_min, (int64_t{1} << 40) + 1, -3})}}});
  out.push_back({.name = "f32_to_bool",
                 .inputs = {f32({5})},
                 .attrs = {{"dtype", DType::boolean}},
                 .given = {{0, f32_data({5}, {0.f, -0.f, 1e-40f, NAN, 2.f})}}});
  out.push_back({.name = "i64_to_bool", .inputs = {i64({33})}, .attrs = {{"dtype", DType::boolean}}});
  out.push_back({.name = "bool_to_f32", .inputs = {boolean({2, 17})}, .attrs = {{"dtype", DType::f32}}});
  out.push_back({.name = "bool_to_i64", .inputs = {boolean({7})}, .attrs = {{"dtype", DType::i64}}});
  out.push_back({.name = "same", .inputs = {f32({sym("n")})}, .attrs = {{"dtype", DType::f32}}, .sizes = {{"n", 3}}});
  out.push_back({.name = "empty", .inputs = {f32({0})}, .attrs = {{"dtype", DType::i64}}});
}

const Op records[] = {
    {{.name = "full",
      .doc = "A tensor whose elements are all one number.",
      .result_names = {"y"},
      .attrs = {{.name = "value", .doc = "the number", .kind = AttrKind::f64, .required = true},
                {.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .required = true},
                {.name = "shape", .doc = "of the result", .kind = AttrKind::dim, .is_list = true, .required = true}},
      .infer = infer_full},
     {.lower = [](LowerContext &c) -> Status {
        c.body.yield(c.body.constant(c.result.dtype, c.attr("value").f64()));
        return {};
      },
      .reference = [](ReferenceContext &c) -> Status {
        fill(c.results[0], c.attr("value").f64());
        return {};
      },
      .samples = samples_full}},

    {{.name = "size",
      .doc = "A dimension's value as a scalar tensor: how arithmetic learns of a symbolic size.",
      .result_names = {"y"},
      .attrs = {{.name = "value", .doc = "an expression over symbols", .kind = AttrKind::dim, .required = true},
                {.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .fallback = DType::i64}},
      .infer = infer_size},
     {.lower = [](LowerContext &c) -> Status {
        c.body.yield(c.body.convert(c.body.index(c.attr("value").dim()), c.result.dtype));
        return {};
      },
      .reference = [](ReferenceContext &c) -> Status {
        const int64_t value = c.attr("value").dim().integer();
        if (c.results[0].is_float())
          c.results[0].f[0] = static_cast<double>(value);
        else
          c.results[0].i[0] = value;
        return {};
      },
      .samples =
          [](SampleSink &out) {
            out.push_back({.name = "literal", .attrs = {{"value", Dim(12)}}});
            out.push_back({.name = "symbolic",
                           .attrs = {{"value", sym("n") - 2 * sym("m")}, {"dtype", DType::f32}},
                           .sizes = {{"n", 3}, {"m", 7}}});
          }}},

    {{.name = "iota",
      .doc = "The index along one dim: 0, 1, 2, ...",
      .result_names = {"y"},
      .attrs = {{.name = "shape", .doc = "of the result", .kind = AttrKind::dim, .is_list = true, .required = true},
                {.name = "dim", .doc = "the dim that counts", .kind = AttrKind::i64, .fallback = 0},
                {.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .fallback = DType::i64}},
      .infer = infer_iota},
     {.lower = [](LowerContext &c) -> Status {
        const size_t dim = normal_axis(c.attr("dim").i64(), c.result.rank());
        c.body.yield(c.body.convert(c.body.index(c.axis(dim)), c.result.dtype));
        return {};
      },
      .reference = [](ReferenceContext &c) -> Status {
        RefTensor &y = c.results[0];
        std::vector<int64_t> strides(y.shape.size(), 0);
        strides[normal_axis(c.attr("dim").i64(), strides.size())] = 1;
        size_t k = 0;
        walk<1>(y.shape, {strides}, [&](auto at) {
          if (y.is_float())
            y.f[k++] = static_cast<double>(at[0]);
          else
            y.i[k++] = at[0];
        });
        return {};
      },
      .samples = samples_iota}},

    {{.name = "convert",
      .doc = "Changes the dtype. Float to integer truncates and saturates, NaN gives 0; to bool: x != 0.",
      .args = {{"x", "any shape", any_type}},
      .result_names = {"y"},
      .attrs = {{.name = "dtype", .doc = "of the result", .kind = AttrKind::dtype, .required = true}},
      .infer = infer_convert},
     {.lower = [](LowerContext &c) -> Status {
        c.body.yield(c.body.convert(c.load(0), c.result.dtype));
        return {};
      },
      .reference = reference_convert,
      .samples = samples_convert}},

    {{.name = "clone",
      .doc = "The same elements in memory of their own.",
      .args = {{"x", "any shape", any_type}},
      .result_names = {"y"},
      .infer = infer_same},
     {.lower = [](LowerContext &c) -> Status {
        c.body.yield(c.load(0));
        return {};
      },
      .reference = [](ReferenceContext &c) -> Status {
        copy_broadcast(*c.inputs[0], c.results[0]);
        return {};
      },
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
      .reference = [](ReferenceContext &c) -> Status {
        copy_broadcast(*c.inputs[1], c.results[0]);
        return {};
      },
      .samples =
          [](SampleSink &out) {
            out.push_back({.name = "matrix", .inputs = {f32({3, 5}), f32({3, 5})}});
            out.push_back({.name = "symbolic", .inputs = {i64({sym("n")}), i64({sym("n")})}, .sizes = {{"n", 7}}});
          }}},
};

}  // namespace

std::span<const Op> creation_ops() { return records; }

}  // namespace kiln::ops
