#include "runtime/ops/family.h"

#include <cassert>

namespace kiln::ops {

Status infer_same(InferContext &c) {
  c.results = {make_type(c.inputs[0].dtype, c.inputs[0].dims)};
  return {};
}

Status infer_broadcast(InferContext &c) {
  Shape dims = c.inputs[0].dims;
  for (const TensorType &input : c.inputs.subspan(1)) {
    KILN_ASSIGN(dims, c.broadcast(dims, input.dims));
  }
  c.results = {make_type(c.inputs.back().dtype, std::move(dims))};
  return {};
}

Status require_dtype(const InferContext &c, DType dtype, DTypes set) {
  if (dtype != DType::none && (dtypes(dtype) & set)) return {};
  std::string expected;
  for (int number = 1; number <= dtype_count; ++number) {
    auto d = static_cast<DType>(number);
    if (dtypes(d) & set) str_append(expected, str_cat(expected.empty() ? "" : ", ", name_of(d)));
  }
  return c.fail("dtype is ", name_of(dtype), "; expected one of ", expected);
}

AttrDef accumulation_dtype() {
  return {
      .name = "dtype",
      .doc =
          "of the result, to which elements are converted first; of 16 bits: they are added or multiplied in f32, of "
          "x in f64 or integers of 32 bits and more in f64, and rounded once in the end; none: x's",
      .kind = AttrKind::dtype,
      .fallback = DType::none};
}

Status accumulate_as_asked(InferContext &c) {
  if (const DType asked = c.attr("dtype").dtype(); asked != DType::none) c.results[0].dtype = asked;
  return require_dtype(c, c.results[0].dtype, numeric_types);
}

Result<DType> product_dtype(const InferContext &c, size_t a, size_t b) {
  const DType left = c.inputs[a].dtype, right = c.inputs[b].dtype;
  if (right == DType::i8 && (left == DType::i8 || left == DType::u8)) return DType::i32;
  if (left == right && size_of(left) > 1) return left;
  return c.fail(c.arg_name(a), " is ", name_of(left), ", ", c.arg_name(b), " is ", name_of(right),
                dtype_info(left).is_float && dtype_info(right).is_float
                    ? "; use convert to make them the same"
                    : "; expected numbers of one dtype, or i8 or u8 by i8");
}

Status require_bias(const InferContext &c, size_t bias, DType product) {
  if (c.inputs[bias].dtype == product) return {};
  return c.fail(c.arg_name(bias), " is ", name_of(c.inputs[bias].dtype), ", the products' sums are ", name_of(product),
                "; use convert to make them the same");
}

Status require_at_most(InferContext &c, const Dim &small, const Dim &large, std::string_view what) {
  Dim room = large - small;
  if (auto least = room.lower_bound(); least && *least >= 0) return {};
  if (auto most = room.upper_bound(); most && *most < 0)
    return c.fail("expected ", what, ", but ", small.text(), " > ", large.text());
  c.equalities.push_back({max(small, large), large, str_cat("expected ", what)});
  return {};
}

Status require_shape(InferContext &c, std::span<const Dim> shape, std::string_view name) {
  for (size_t d = 0; d < shape.size(); ++d) KILN_TRY(require_at_most(c, 0, shape[d], str_cat("0 <= ", name, " ", d)));
  return {};
}

Status require_rank(const InferContext &c, size_t input, size_t rank) {
  const TensorType &type = c.inputs[input];
  if (type.rank() == rank) return {};
  return c.fail(c.arg_name(input), " is ", type.text(), ", expected ", rank, " dimensions");
}

Result<std::vector<bool>> distinct_dims(const InferContext &c, size_t rank) {
  std::vector<bool> named(rank, false);
  for (int64_t dim : c.attr("dims").i64_list()) {
    KILN_ASSIGN(int64_t d, c.axis(dim, rank, "dims"));
    if (named[static_cast<size_t>(d)]) return c.fail("dims names dim ", d, " twice");
    named[static_cast<size_t>(d)] = true;
  }
  return named;
}

Status require_integers(const InferContext &c, std::string_view attr, size_t count, int64_t minimum) {
  const std::vector<int64_t> &values = c.attr(attr).i64_list();
  if (values.size() != count) return c.fail(attr, " has ", values.size(), " values, expected ", count);
  for (int64_t value : values)
    if (value < minimum || value > farthest)
      return c.fail(attr, " holds ", value, ", expected at ",
                    value < minimum ? str_cat("least ", minimum) : str_cat("most ", farthest));
  return {};
}

Status require_finite(const InferContext &c, std::string_view attr, double minimum) {
  const double value = c.attr(attr).f64();
  if (std::isfinite(value) && value >= minimum) return {};
  const bool any = minimum == std::numeric_limits<double>::lowest();
  return c.fail(attr, " is ", value, ", expected a finite number", any ? "" : str_cat(" of at least ", minimum));
}

Status require_word(const InferContext &c, std::string_view attr, std::span<const std::string_view> words) {
  const std::string &word = c.attr(attr).text_value();
  if (std::ranges::find(words, word) != words.end()) return {};
  const auto quoted = [](std::string_view each) { return str_cat("'", each, "'"); };
  return c.fail(attr, " is '", word, "', expected ", join(words.first(words.size() - 1), ", ", quoted), " or ",
                quoted(words.back()));
}

Dim from_the_end(const Dim &index, const Dim &size) {
  return index.is_integer() && index.integer() < 0 ? size + index : index;
}

int64_t slice_step(const AttrMap &attrs) { return std::clamp(attrs.find("step")->second.i64(), -farthest, farthest); }

Result<Slice> checked_slice(InferContext &c, const TensorType &x) {
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  const int64_t step = slice_step(c.attrs);
  if (step == 0) return c.fail("step is 0, expected any other");
  const Dim &size = x.dims[static_cast<size_t>(dim)], &given = c.attr("end").dim();
  const Dim start = from_the_end(c.attr("start").dim(), size);
  if (step < 0) {
    const Dim end = given == -1 - size ? Dim(-1) : from_the_end(given, size);
    KILN_TRY(require_at_most(c, -1, end, str_cat("-1 <= end, in dim ", dim)));
    KILN_TRY(require_at_most(c, end, start, str_cat("end <= start where step is below 0, in dim ", dim)));
    KILN_TRY(require_at_most(c, start, size - 1, str_cat("start <= size - 1, in dim ", dim)));
    return Slice{static_cast<size_t>(dim), start, ceil_div(start - end, -step), step};
  }
  const Dim end = from_the_end(given, size);
  KILN_TRY(require_at_most(c, 0, start, str_cat("0 <= start, in dim ", dim)));
  KILN_TRY(require_at_most(c, start, end, str_cat("start <= end, in dim ", dim)));
  KILN_TRY(require_at_most(c, end, size, str_cat("end <= size, in dim ", dim)));
  return Slice{static_cast<size_t>(dim), start, ceil_div(end - start, step), step};
}

Status infer_channels(InferContext &c) {
  const TensorType &x = c.inputs[0];
  if (x.rank() < 2) return c.fail("x is ", x.text(), ", expected [N, C, ...]");
  for (size_t k = 1; k < c.inputs.size(); ++k) {
    KILN_TRY(require_rank(c, k, 1));
    KILN_TRY(c.require_equal(x.dims[1], c.inputs[k].dims[0], str_cat("x dim 1 and ", c.arg_name(k), " dim 0")));
  }
  return infer_same(c);
}

AttrDef number(std::string_view name, std::string_view doc, double fallback) {
  return {.name = name, .doc = doc, .kind = AttrKind::f64, .fallback = fallback};
}
AttrDef flag(std::string_view name, std::string_view doc, bool fallback) {
  return {.name = name, .doc = doc, .kind = AttrKind::boolean, .fallback = fallback};
}
AttrDef list(std::string_view name, std::string_view doc, AttrKind kind) {
  return {.name = name, .doc = doc, .kind = kind, .is_list = true, .required = true};
}
AttrDef list(std::string_view name, std::string_view doc, std::vector<int64_t> fallback) {
  return {.name = name, .doc = doc, .kind = AttrKind::i64, .is_list = true, .fallback = ints(std::move(fallback))};
}
AttrDef dim_attr(std::string_view doc) { return {.name = "dim", .doc = doc, .kind = AttrKind::i64, .required = true}; }
AttrDef dim_attr(std::string_view doc, int64_t fallback) {
  return {.name = "dim", .doc = doc, .kind = AttrKind::i64, .fallback = fallback};
}

size_t normal_axis(int64_t axis, size_t rank) {
  int64_t normal = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  assert(normal >= 0 && normal <= static_cast<int64_t>(rank));
  return static_cast<size_t>(normal);
}

namespace {
template <class Size>
std::vector<Size> broadcast_sizes(std::vector<Size> a, const std::vector<Size> &b) {
  if (b.size() > a.size()) a.insert(a.begin(), b.size() - a.size(), Size(1));
  for (size_t d = 0; d < b.size(); ++d)
    if (Size &size = a[a.size() - b.size() + d]; size == Size(1)) size = b[d];
  return a;
}
}  // namespace

Shape broadcast_shape(const Shape &a, const Shape &b) { return broadcast_sizes(a, b); }
std::vector<int64_t> broadcast_shape(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  return broadcast_sizes(a, b);
}

std::vector<bool> named_dims(std::span<const int64_t> dims, size_t rank) {
  std::vector<bool> named(rank, false);
  for (int64_t d : dims) named[normal_axis(d, rank)] = true;
  return named;
}

int inside(kernel::BodyBuilder &body, const Expr &index, const Expr &size) {
  auto provably_at_least_0 = [](const Expr &e) {
    auto least = e.lower_bound();
    return least && *least >= 0;
  };
  int above = -1, below = -1;
  if (!provably_at_least_0(index)) above = body.op(kernel::Core::ge, body.index(index), body.index(0));
  if (!provably_at_least_0(size - 1 - index)) below = body.op(kernel::Core::lt, body.index(index), body.index(size));
  return both(body, above, below);
}

int both(kernel::BodyBuilder &body, int a, int b) {
  if (a < 0) return b;
  if (b < 0) return a;
  return body.op(kernel::Core::logical_and, a, b);
}

}  // namespace kiln::ops
