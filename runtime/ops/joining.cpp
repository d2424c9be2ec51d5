// Ops that put tensors beside each other or take them apart, or put numbers around one. What lies outside an operand is
// never read.
#include <bit>
#include <tuple>

#include "runtime/ops/family.h"
#include "runtime/ops/filling.h"

namespace kiln::ops {
namespace {

using kernel::Core;

Status infer_concat(InferContext &c) {
  if (c.inputs.empty()) return c.fail("there are no inputs; expected at least one");
  const TensorType &first = c.inputs[0];
  KILN_ASSIGN(int64_t axis, c.axis(c.attr("dim").i64(), first.rank(), "dim"));
  const auto dim = static_cast<size_t>(axis);
  Shape shape = first.dims;
  for (size_t k = 1; k < c.inputs.size(); ++k) {
    const TensorType &other = c.inputs[k];
    if (other.rank() != first.rank())
      return c.fail("input ", k, " is ", other.text(), ", input 0 is ", first.text(), "; expected equal ranks");
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != dim) KILN_TRY(c.require_equal(shape[d], other.dims[d], str_cat("dim ", d, " of inputs 0 and ", k)));
    shape[dim] += other.dims[dim];
  }
  c.results = {make_type(first.dtype, std::move(shape))};
  return {};
}

// A chain of choices by the position along `dim`, from the last operand to the first.
Status lower_concat(LowerContext &c) {
  const size_t dim = dim_of(c, c.result.rank());
  const Expr at = c.axis(dim);
  Expr begin = c.result.dims[dim];
  int chosen = -1;
  for (size_t k = c.inputs.size(); k-- > 0;) {
    const Expr end = begin;
    begin = k == 0 ? Expr(0) : end - c.inputs[k].dims[dim];
    const bool last = k + 1 == c.inputs.size();
    const int after_begin = k == 0 ? -1 : c.body.op(Core::ge, c.body.index(at), c.body.index(begin));
    const int before_end = last ? -1 : c.body.op(Core::lt, c.body.index(at), c.body.index(end));
    std::vector<Expr> index = c.axes();
    index[dim] = at - begin;
    const int value = c.load(k, std::move(index), both(c.body, after_begin, before_end));
    chosen = last ? value : c.body.op(Core::select, before_end, value, chosen);
  }
  c.body.yield(chosen);
  return {};
}

Status reference_concat(ReferenceContext &c) {
  RefTensor &y = c.results[0];
  const size_t dim = dim_of(c, y.shape.size());
  Walk to{0, dense_strides(y.shape)};
  for (const RefTensor *x : c.inputs) {
    KILN_TRY(copy_walked(c, x->shape, *x, {0, dense_strides(x->shape)}, y, to));
    to.begin += x->shape[dim] * to.strides[dim];
  }
  return {};
}

// What pad puts around x: a number, or elements of x.
enum class Around { constant, reflect, replicate, circular };
constexpr std::string_view pad_modes[] = {"constant", "reflect", "replicate", "circular"};
Around around(const AttrMap &attrs) {
  const auto at = std::ranges::find(pad_modes, attrs.find("mode")->second.text_value());
  return static_cast<Around>(at - std::begin(pad_modes));
}

Status infer_pad(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_TRY(require_integers(c, "low", x.rank(), -farthest));
  KILN_TRY(require_integers(c, "high", x.rank(), -farthest));
  KILN_TRY(require_word(c, "mode", pad_modes));
  const Around how = around(c.attrs);
  if (how == Around::constant) KILN_TRY(require_filling(c, x.dtype));
  Shape shape = x.dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t low = c.attr("low").i64_list()[d], high = c.attr("high").i64_list()[d];
    shape[d] = shape[d] + Dim(low) + Dim(high);
    KILN_TRY(require_at_most(c, 0, shape[d], str_cat("0 <= padded x dim ", d)));
    if (const int64_t most = std::max(low, high); most > 0 && how != Around::constant) {
      const Dim needed = how == Around::reflect ? Dim(most) + 1 : how == Around::circular ? Dim(most) : Dim(1);
      KILN_TRY(
          require_at_most(c, needed, x.dims[d],
                          str_cat("at least ", needed.text(), " elements along x dim ", d, " for mode '",
                                  c.attr("mode").text_value(), "' and ", most == low ? "low" : "high", " ", most)));
    }
  }
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

Status lower_pad(LowerContext &c) {
  const std::vector<int64_t> &low = c.attr("low").i64_list(), &high = c.attr("high").i64_list();
  const Around how = around(c.attrs);
  std::vector<Expr> index;
  int valid = -1;
  for (size_t d = 0; d < c.result.rank(); ++d) {
    const Dim &size = c.inputs[0].dims[d];
    Expr at = c.axis(d) - low[d];
    if (how == Around::constant) {
      valid = both(c.body, valid, inside(c.body, at, size));
    } else if (low[d] > 0 || high[d] > 0) {
      if (how == Around::reflect) at = max(at, 0 - at), at = min(at, (size - 1) * 2 - at);
      if (how == Around::replicate) at = max(min(at, size - 1), 0);
      if (how == Around::circular) at = mod(at + size, size);
    }
    index.push_back(std::move(at));
  }
  // Of another mode what value says is of no matter.
  c.body.yield(c.load(0, std::move(index), valid, filling(c.attrs, c.result.dtype).value_or(0)));
  return {};
}

Status reference_pad(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &y = c.results[0];
  const std::vector<int64_t> &low = c.attr("low").i64_list();
  const std::vector<int64_t> strides = dense_strides(x.shape), places = dense_strides(y.shape);
  const Around how = around(c.attrs);
  const uint64_t value = filling(c.attrs, y.dtype).value_or(0);
  return dispatch(y, [&](auto zero) {
    using T = decltype(zero);
    const ReadElements<T> in(x);
    return make_each<T>(c, [&](int64_t k) {
      int64_t from = 0;
      bool is_inside = true;
      for (size_t d = 0; d < low.size(); ++d) {
        const int64_t size = x.shape[d];
        int64_t at = k / places[d] % y.shape[d] - low[d];
        if (how == Around::reflect) at = at < 0 ? -at : at >= size ? 2 * size - 2 - at : at;
        if (how == Around::replicate) at = std::clamp<int64_t>(at, 0, size - 1);
        if (how == Around::circular) at = (at + size) % size;
        is_inside = is_inside && at >= 0 && at < size;
        from += at * strides[d];
      }
      return is_inside ? in[static_cast<size_t>(from)] : std::bit_cast<T>(value);
    });
  });
}

Status infer_split(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  const Shape &sizes = c.attr("sizes").dim_list();
  if (sizes.empty()) return c.fail("sizes is empty, expected at least one");
  KILN_TRY(require_shape(c, sizes, "sizes"));
  Dim total = 0;
  for (const Dim &size : sizes) total += size;
  KILN_TRY(c.require_equal(total, x.dims[static_cast<size_t>(dim)], str_cat("the sum of sizes and x dim ", dim)));
  for (const Dim &size : sizes) {
    c.results.push_back(make_type(x.dtype, x.dims));
    c.results.back().dims[static_cast<size_t>(dim)] = size;
  }
  return {};
}
Status decompose_split(DecomposeContext &c) {
  const ValueId x = c.node.inputs[0];
  const auto dim = static_cast<int64_t>(dim_of(c, c.type(x).rank()));
  Dim begin = 0;
  for (const Dim &size : c.attr("sizes").dim_list()) {
    const Dim end = begin + size;
    KILN_ASSIGN(const ValueId part, c.add("slice", {x}, {{"dim", dim}, {"start", begin}, {"end", end}}));
    c.results.push_back(part);
    begin = end;
  }
  return {};
}
Status reference_split(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const size_t dim = dim_of(c, x.shape.size());
  Walk from{0, dense_strides(x.shape)};
  for (RefTensor &y : c.results) {
    KILN_TRY(copy_walked(c, y.shape, x, from, y, {0, dense_strides(y.shape)}));
    from.begin += y.shape[dim] * from.strides[dim];
  }
  return {};
}

Status infer_stack(InferContext &c) {
  if (c.inputs.empty()) return c.fail("there are no inputs; expected at least one");
  const TensorType &first = c.inputs[0];
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), first.rank() + 1, "dim"));
  for (size_t k = 1; k < c.inputs.size(); ++k) {
    const TensorType &other = c.inputs[k];
    if (other.rank() != first.rank())
      return c.fail("input ", k, " is ", other.text(), ", input 0 is ", first.text(), "; expected equal shapes");
    for (size_t d = 0; d < first.rank(); ++d)
      KILN_TRY(c.require_equal(first.dims[d], other.dims[d], str_cat("dim ", d, " of inputs 0 and ", k)));
  }
  Shape shape = first.dims;
  shape.insert(shape.begin() + dim, static_cast<int64_t>(c.inputs.size()));
  c.results = {make_type(first.dtype, std::move(shape))};
  return {};
}
Status decompose_stack(DecomposeContext &c) {
  const auto dim = static_cast<int64_t>(dim_of(c, c.type(c.node.inputs[0]).rank() + 1));
  std::vector<ValueId> parts;
  for (const ValueId x : c.node.inputs) {
    KILN_ASSIGN(parts.emplace_back(), c.add("unsqueeze", {x}, {{"dims", ints({dim})}}));
  }
  KILN_ASSIGN(const ValueId y, c.add("concat", std::move(parts), {{"dim", dim}}));
  c.results = {y};
  return {};
}
Status reference_stack(ReferenceContext &c) {
  RefTensor &y = c.results[0];
  const size_t dim = dim_of(c, y.shape.size());
  Walk to{0, dense_strides(y.shape)};
  const int64_t step = to.strides[dim];
  to.strides.erase(to.strides.begin() + static_cast<ptrdiff_t>(dim));
  for (const RefTensor *x : c.inputs) {
    KILN_TRY(copy_walked(c, x->shape, *x, {0, dense_strides(x->shape)}, y, to));
    to.begin += step;
  }
  return {};
}

void samples_concat(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  out.push_back({.name = "rows", .inputs = {f32({3, 17}), f32({5, 17})}, .attrs = {{"dim", 0}}});
  out.push_back({.name = "columns", .inputs = {f32({7, 17}), f32({7, 16}), f32({7, 1})}, .attrs = {{"dim", -1}}});
  out.push_back({.name = "middle", .inputs = {f32({3, 2, 5}), f32({3, 7, 5})}, .attrs = {{"dim", 1}}});
  out.push_back({.name = "single", .inputs = {f32({65})}, .attrs = {{"dim", 0}}});
  out.push_back({.name = "empty_part", .inputs = {f32({3, 0}), f32({3, 5}), f32({3, 0})}, .attrs = {{"dim", 1}}});
  out.push_back({.name = "all_empty", .inputs = {f32({0}), f32({0})}, .attrs = {{"dim", 0}}});
  out.push_back(
      {.name = "symbolic", .inputs = {f32({n, 3}), f32({m, 3})}, .attrs = {{"dim", 0}}, .sizes = {{"n", 5}, {"m", 8}}});
  out.push_back({.name = "symbolic_empty",
                 .inputs = {f32({n, 3}), f32({m, 3})},
                 .attrs = {{"dim", 0}},
                 .sizes = {{"n", 0}, {"m", 7}}});
  out.push_back({.name = "integers", .inputs = {i64({7}), i64({9})}, .attrs = {{"dim", 0}}});
  out.push_back({.name = "booleans", .inputs = {boolean({2, 3}), boolean({2, 4})}, .attrs = {{"dim", 1}}});
}

void samples_pad(SampleSink &out) {
  auto sample = [&](const char *name, TensorType x, std::vector<int64_t> low, std::vector<int64_t> high, double value,
                    std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {std::move(x)},
                   .attrs = {{"low", ints(std::move(low))}, {"high", ints(std::move(high))}, {"value", value}},
                   .sizes = std::move(sizes)});
  };
  sample("both_sides", f32({7, 17}), {1, 2}, {3, 0}, 0);
  sample("inner", f32({5, 33}), {0, 1}, {0, 1}, -1.5);
  sample("nothing", f32({5, 3}), {0, 0}, {0, 0}, 1);
  sample("around_nothing", f32({0, 3}), {2, 0}, {1, 1}, 0.5);
  sample("infinite", f32({9}), {4}, {4}, -infinity);
  sample("beyond_bytes", f32({3}), {1}, {1}, 1e9);
  sample("scalar", f32({}), {}, {}, 1);
  sample("integers", i64({3, 4}), {1, 1}, {1, 1}, -7);
  sample("one_integer", i64({1, 1}), {1, 2}, {1, 3}, -7);
  for (auto [name, dtype, digits] : {std::tuple{"longest", DType::i64, "-9223372036854775807"},
                                     std::tuple{"longest_unsigned", DType::u64, "18446744073709551615"}}) {
    sample(name, make_type(dtype, {3}), {2}, {1}, 0);
    out.back().attrs.insert_or_assign("exact", digits);
  }
  sample("booleans", boolean({7}), {1}, {2}, 1);
  sample("symbolic", f32({sym("n"), 3}), {1, 1}, {0, 1}, 2, {{"n", 8}});
  sample("cut", f32({7, 9}), {-2, 1}, {1, -3}, 2);
  sample("cut_to_nothing", f32({3, 4}), {-3, 0}, {0, 1}, 0);
  for (const std::string_view mode : {"reflect", "replicate", "circular"}) {
    const size_t first = out.size();
    sample("both_sides", f32({4, 5}), {1, 3}, {3, 0}, 0);
    sample("one_side", f32({2, 3, 9}), {0, 0, 8}, {0, 1, 0}, 0);
    sample("cut", f32({5, 6}), {-1, 2}, {2, -3}, 0);
    sample("symbolic", f32({sym("n"), 3}), {1, 2}, {0, 1}, 0, {{"n", 4}});
    for (size_t k = first; k < out.size(); ++k) {
      out[k].name = str_cat(mode, "_", out[k].name);
      out[k].attrs.insert_or_assign("mode", std::string(mode));
    }
  }
  sample("replicate_far", f32({3, 1}), {5, 0}, {0, 4}, 0);
  out.back().attrs.insert_or_assign("mode", "replicate");
}

void samples_split(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back(sample_of("halves", {34}, {{"sizes", AttrValue(Shape{17, 17})}, {"dim", 0}}, {}));
  out.push_back(sample_of("columns", {7, 33}, {{"sizes", AttrValue(Shape{16, 1, 16})}, {"dim", -1}}, {}));
  out.push_back(sample_of("middle", {3, 10, 5}, {{"sizes", AttrValue(Shape{2, 8})}, {"dim", 1}}, {}));
  out.push_back(sample_of("one", {5, 3}, {{"sizes", AttrValue(Shape{5})}, {"dim", 0}}, {}));
  out.push_back(sample_of("with_nothing", {5, 3}, {{"sizes", AttrValue(Shape{0, 5, 0})}, {"dim", 0}}, {}));
  out.push_back(sample_of("symbolic", {3 * n, 2}, {{"sizes", AttrValue(Shape{n, 2 * n})}, {"dim", 0}}, {{"n", 5}}));
}
void samples_stack(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back({.name = "rows", .inputs = {f32({17}), f32({17}), f32({17})}});
  out.push_back({.name = "columns", .inputs = {f32({5, 7}), f32({5, 7})}, .attrs = {{"dim", -1}}});
  out.push_back({.name = "middle", .inputs = {f32({5, 7}), f32({5, 7})}, .attrs = {{"dim", 1}}});
  out.push_back({.name = "scalars", .inputs = {f32({}), f32({})}});
  out.push_back({.name = "one", .inputs = {f32({3})}});
  out.push_back({.name = "empty", .inputs = {f32({0}), f32({0})}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, 3}), f32({n, 3})}, .attrs = {{"dim", 1}}, .sizes = {{"n", 5}}});
}

const Op joining_records[] = {
    {{.name = "concat",
      .doc = "The operands one after the other along one dim.",
      .flags = op_flags::moves,
      .args = {{"xs", "one or more, equal in all other dims", any_type, Arity::variadic}},
      .result_names = {"y"},
      .attrs = {{.name = "dim",
                 .doc = "the dim along which they follow each other",
                 .kind = AttrKind::i64,
                 .required = true}},
      .infer = infer_concat},
     {.lower = lower_concat, .reference = reference_concat, .gradient = by_rule("xs"), .samples = samples_concat}},

    {{.name = "pad",
      .doc = "A tensor with a number, or with its own elements, around it; or with less of it.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type}},
      .result_names = {"y"},
      .attrs = {list("low", "elements before, for each dim; negative: so many of x's are left out"),
                list("high", "elements after, for each dim, likewise"),
                number("value", "the number", 0.0),
                exact_attr(),
                {.name = "mode",
                 .doc = "'constant': the number; 'reflect': mirrored at x's ends, which are not repeated; 'replicate': "
                        "x's ends; 'circular': x's other end",
                 .kind = AttrKind::text,
                 .fallback = "constant"}},
      .infer = infer_pad},
     {.lower = lower_pad, .reference = reference_pad, .gradient = by_rule("x"), .samples = samples_pad}},

    {{.name = "split",
      .doc = "x in parts along dim, one result each: views, as slices are.",
      .flags = op_flags::moves,
      .args = {{"x", "any shape", any_type}},
      .attrs = {list("sizes", "of the parts, whose sum is x's", AttrKind::dim), dim_attr("of x", 0)},
      .infer = infer_split},
     {.decompose = decompose_split,
      .reference = reference_split,
      .gradient = through_decomposition(),
      .samples = samples_split}},
    {{.name = "stack",
      .doc = "Tensors of one shape beside each other along a new dim.",
      .flags = op_flags::moves | op_flags::new_dims,
      .args = {{"x", "of one shape", any_type, Arity::variadic}},
      .result_names = {"y"},
      .attrs = {dim_attr("of the result", 0)},
      .infer = infer_stack},
     {.decompose = decompose_stack,
      .reference = reference_stack,
      .gradient = through_decomposition(),
      .samples = samples_stack}},
};

}  // namespace

std::span<const Op> joining_ops() { return joining_records; }

}  // namespace kiln::ops
