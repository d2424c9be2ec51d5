// Reductions over some or all dims.
#include <cmath>

#include "runtime/ops/composer.h"
#include "runtime/ops/reducing.h"

namespace kiln::ops {
namespace {

using kernel::Core;

Status infer_reduce_accumulation(InferContext &c) {
  KILN_TRY(infer_reduce(c));
  return accumulate_as_asked(c);
}

Status infer_position(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  std::vector<bool> reduced(x.rank(), false);
  reduced[static_cast<size_t>(dim)] = true;
  KILN_TRY(require_at_most(c, 1, x.dims[static_cast<size_t>(dim)], str_cat("at least one element along dim ", dim)));
  c.results = {make_type(DType::i64, reduced_shape(x.dims, reduced, c.attr("keepdim").boolean()))};
  return {};
}
Status infer_extreme(InferContext &c) {
  KILN_TRY(infer_position(c));
  c.results.insert(c.results.begin(), make_type(c.inputs[0].dtype, c.results[0].dims));
  return {};
}

// The operand's index: a new reduce axis for each reduced dim, the result's axes for the others, in order.
std::vector<Expr> reduce_index(LowerContext &c, const std::vector<bool> &reduced) {
  const TensorType &x = c.inputs[0];
  const bool keepdim = c.attr("keepdim").boolean();
  std::vector<Expr> index;
  for (size_t d = 0, at = 0; d < x.rank(); ++d) {
    index.push_back(reduced[d] ? c.reduce_axis(x.dims[d]) : c.axis(at));
    if (!reduced[d] || keepdim) ++at;
  }
  if (c.compute.reduce.empty()) c.reduce_axis(1);  // a scalar is its own sum
  return index;
}

template <Core combine>
Status lower_reduce(LowerContext &c) {
  const std::vector<Expr> index = reduce_index(c, reduced_dims(c.attrs, c.inputs[0].rank()));
  c.compute.carriers = kernel::carriers_of(combine, c.result.dtype);
  c.body.yield(c.body.convert(c.load(0, index), c.result.dtype));
  return {};
}

// The index of the largest or the smallest; with two results the element before it.
template <bool of_largest>
Status lower_position(LowerContext &c) {
  const size_t dim = dim_of(c, c.inputs[0].rank());
  std::vector<bool> reduced(c.inputs[0].rank(), false);
  reduced[dim] = true;
  const std::vector<Expr> index = reduce_index(c, reduced);
  c.compute.carriers = kernel::argmax_carriers(c.inputs[0].dtype, of_largest);
  c.compute.results.back().value = 1;
  c.body.yield(c.load(0, index));
  c.body.yield(c.body.index(index[dim]));
  return {};
}

// sum / count
Status decompose_mean(DecomposeContext &c) {
  const TensorType x = c.type(c.node.inputs[0]);
  const std::vector<bool> reduced = reduced_dims(c.node.attrs, x.rank());
  Dim count = 1;
  for (size_t d = 0; d < x.rank(); ++d)
    if (reduced[d]) count *= x.dims[d];
  KILN_ASSIGN(ValueId sum, c.add("sum", c.node.inputs, c.node.attrs));
  KILN_ASSIGN(ValueId divisor, c.count(x.dtype, count));
  KILN_ASSIGN(ValueId mean, c.add("div", {sum, divisor}));
  c.results = {mean};
  return {};
}

// Combines the elements of x, beginning with `identity` (of floats) or `integer_identity`; floats are divided in the
// end.
template <auto combine>
Status reference_fold(ReferenceContext &c, double identity, int64_t integer_identity, double divisor = 1) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  return dispatch_wide(y, [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    using Wide = decltype(wide);
    constexpr bool is_float = std::is_floating_point_v<T>;
    const Converted<T> in(x, y.dtype);
    const WriteElements<T> out(y);
    return for_each_group(c, x.shape, reduced_dims(c.attrs, x.shape.size()), [&](size_t result, auto each) {
      Wide total = is_float ? Wide(identity) : Wide(integer_identity);
      each([&](size_t k) { total = combine(total, Wide(in[k])); });
      out.set(result, static_cast<T>(is_float ? total / Wide(divisor) : total));
    });
  });
}

constexpr auto plus = [](auto a, auto b) { return add(a, b); };
Status reference_sum(ReferenceContext &c) { return reference_fold<plus>(c, 0, 0); }
Status reference_prod(ReferenceContext &c) {
  return reference_fold<[](auto a, auto b) { return mul(a, b); }>(c, 1, 1);
}
Status reference_max(ReferenceContext &c) {
  return reference_fold<[](auto a, auto b) { return larger(a, b); }>(c, -infinity, least_of(c.results[0].dtype));
}
Status reference_min(ReferenceContext &c) {
  return reference_fold<[](auto a, auto b) { return smaller(a, b); }>(c, infinity, largest_of(c.results[0].dtype));
}

Status reference_mean(ReferenceContext &c) {
  const double results = static_cast<double>(std::max<int64_t>(c.results[0].size(), 1));
  return reference_fold<plus>(c, 0, 0, static_cast<double>(c.inputs[0]->size()) / results);
}

// Of the first that is the largest or the smallest; a NaN is either.
template <bool of_largest>
Status reference_position(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const WriteElements<int64_t> places(c.results.back());
  std::vector<bool> reduced(x.shape.size(), false);
  reduced[dim_of(c, x.shape.size())] = true;
  return dispatch(x, [&](auto zero) {
    using T = decltype(zero);
    const ReadElements<T> in(x);
    const WriteElements<T> values(c.results[0]);
    return for_each_group(c, x.shape, reduced, [&](size_t result, auto each) {
      T best = zero;
      int64_t place = 0, number = 0;
      each([&](size_t k) {
        const T value = in[k];
        if (number == 0 || (!is_nan(best) && (is_nan(value) || (of_largest ? value > best : value < best)))) {
          best = value;
          place = number;
        }
        ++number;
      });
      places.set(result, place);
      if (c.results.size() > 1) values.set(result, best);
    });
  });
}

// Over no elements: the identity.
void samples_with_identity(SampleSink &out) {
  reduction_samples(out);
  out.push_back({.name = "over_nothing", .inputs = {f32({3, 0})}, .attrs = {{"dims", ints({1})}}});
  out.push_back({.name = "over_symbolic_nothing",
                 .inputs = {f32({3, sym("n")})},
                 .attrs = {{"dims", ints({1})}},
                 .sizes = {{"n", 0}}});
  out.push_back({.name = "integers", .inputs = {i64({5, 7})}, .attrs = {{"dims", ints({0})}}});
  out.push_back({.name = "integers_over_nothing", .inputs = {i64({0, 7})}, .attrs = {{"dims", ints({0})}}});
}
void samples_reduce_accumulation(SampleSink &out) {
  samples_with_identity(out);
  out.push_back({.name = "booleans_counted",
                 .inputs = {boolean({9, 33})},
                 .attrs = {{"dims", ints({1})}, {"dtype", DType::i64}}});
  out.push_back({.name = "bytes_in_32_bits",
                 .inputs = {make_type(DType::u8, {5, 65})},
                 .attrs = {{"dims", ints({0})}, {"dtype", DType::i32}},
                 .int_low = 200,
                 .int_high = 256});
  out.push_back({.name = "in_f64",
                 .inputs = {f32({3, 65})},
                 .attrs = {{"dims", ints({1})}, {"dtype", DType::f64}},
                 .int_low = 1,
                 .int_high = 3});
}
void samples_order(SampleSink &out) {
  samples_with_identity(out);
  out.push_back({.name = "edges",
                 .inputs = {f32({3, 3})},
                 .attrs = {{"dims", ints({1})}},
                 .given = {{0, f32_data({3, 3}, {1.f, NAN, 2.f, -INFINITY, -1e30f, -INFINITY, INFINITY, 3.f, -0.f})}}});
}
void samples_argmax(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  out.push_back({.name = "vector", .inputs = {f32({257})}});
  out.push_back({.name = "rows", .inputs = {f32({9, 33})}, .attrs = {{"keepdim", true}}});
  out.push_back({.name = "columns", .inputs = {f32({9, 33})}, .attrs = {{"dim", 0}}});
  out.push_back({.name = "middle", .inputs = {f32({3, 7, 5})}, .attrs = {{"dim", -2}}});
  out.push_back({.name = "integers_with_ties", .inputs = {i64({17, 65})}, .int_low = 0, .int_high = 3});
  out.push_back({.name = "one", .inputs = {f32({5, 1})}});
  out.push_back({.name = "nothing_left", .inputs = {f32({0, 3})}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, m})}, .sizes = {{"n", 5}, {"m", 17}}});
  out.push_back({.name = "edges",
                 .inputs = {f32({4, 3})},
                 .given = {{0, f32_data({4, 3}, {1.f, NAN, NAN, -INFINITY, -INFINITY, -INFINITY, 3.f, 3.f, 1.f, -0.f,
                                                 0.f, 0.f})}}});
}

// One whose result may have another dtype, in which it is then computed.
Op accumulation(std::string_view name, std::string_view doc, OpMeaning meaning) {
  return reduction(name, doc, comparable_types, reduce_attrs_and({accumulation_dtype()}), infer_reduce_accumulation,
                   meaning);
}

void samples_argmin(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  out.push_back({.name = "vector", .inputs = {f32({257})}});
  out.push_back({.name = "rows", .inputs = {f32({9, 33})}, .attrs = {{"keepdim", true}}});
  out.push_back({.name = "columns", .inputs = {f32({9, 33})}, .attrs = {{"dim", 0}}});
  out.push_back({.name = "integers_with_ties", .inputs = {i64({17, 65})}, .int_low = 0, .int_high = 3});
  out.push_back({.name = "integer_edges", .inputs = {i64({3})}, .given = {{0, i64_data({3}, {0, i64_min, i64_max})}}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, m})}, .sizes = {{"n", 5}, {"m", 17}}});
  out.push_back({.name = "edges",
                 .inputs = {f32({3, 3})},
                 .given = {{0, f32_data({3, 3}, {1.f, NAN, NAN, INFINITY, INFINITY, INFINITY, 3.f, 1.f, 1.f})}}});
}
void samples_extreme(SampleSink &out) {
  const Dim n = sym("n");
  samples_argmax(out);
  out.push_back({.name = "middle_kept", .inputs = {f32({3, 17, 5})}, .attrs = {{"dim", 1}, {"keepdim", true}}});
  out.push_back({.name = "of_one", .inputs = {f32({5, 1})}});
  out.push_back({.name = "no_rows", .inputs = {f32({0, 3})}});
  out.push_back({.name = "bytes", .inputs = {make_type(DType::u8, {n, 3})}, .sizes = {{"n", 9}}, .int_low = 0});
  out.push_back(
      {.name = "zeros", .inputs = {f32({2, 2})}, .given = {{0, f32_data({2, 2}, {0.f, -0.f, -INFINITY, -INFINITY})}}});
}

std::vector<AttrDef> position_attrs() {
  return {{.name = "dim", .doc = "the dim to search", .kind = AttrKind::i64, .fallback = -1},
          flag("keepdim", "keep the dim, with size 1", false)};
}
Op position(std::string_view name, std::string_view doc, OpMeaning meaning) {
  Op op = reduction(name, doc, numeric_types, position_attrs(), infer_position, meaning);
  op.args[0].doc = "at least one dim";
  op.result_names = {"index"};
  return op;
}
Op extreme(std::string_view name, std::string_view doc, OpMeaning meaning) {
  Op op = position(name, doc, meaning);
  op.infer = infer_extreme;
  op.result_names = {"values", "indices"};
  return op;
}
const Op reduce_records[] = {
    accumulation("sum", "The sum; 0 over no elements; integers wrap.",
                 {.lower = lower_reduce<Core::add>,
                  .reference = reference_sum,
                  .gradient = by_rule("x"),
                  .samples = samples_reduce_accumulation}),
    accumulation("prod", "The product; 1 over no elements; integers wrap.",
                 {.lower = lower_reduce<Core::mul>,
                  .reference = reference_prod,
                  .gradient = by_rule("x"),
                  .samples = samples_reduce_accumulation}),
    reduction("max", "The largest element, NaN if one is; the least value of the dtype over no elements.",
              numeric_types, reduce_attrs(), infer_reduce,
              {.lower = lower_reduce<Core::max>,
               .reference = reference_max,
               .gradient = by_rule("x", Ties::even),
               .samples = samples_order}),
    reduction("min", "The smallest element, NaN if one is; the largest value of the dtype over no elements.",
              numeric_types, reduce_attrs(), infer_reduce,
              {.lower = lower_reduce<Core::min>,
               .reference = reference_min,
               .gradient = by_rule("x", Ties::even),
               .samples = samples_order}),
    reduction("mean", "The sum divided by the number of elements; NaN over none.", float_types, reduce_attrs(),
              infer_reduce,
              {.decompose = decompose_mean,
               .reference = reference_mean,
               .gradient = through_decomposition(),
               .samples =
                   [](SampleSink &out) {
                     reduction_samples(out);
                     out.push_back({.name = "over_nothing", .inputs = {f32({3, 0})}, .attrs = {{"dims", ints({1})}}});
                   }}),

    position("argmax", "The index of the first largest element along a dim; a NaN counts as the largest.",
             {.lower = lower_position<true>,
              .reference = reference_position<true>,
              .gradient = gives_indices,
              .samples = samples_argmax}),
    position("argmin", "The index of the first smallest element along a dim; a NaN counts as the smallest.",
             {.lower = lower_position<false>,
              .reference = reference_position<false>,
              .gradient = gives_indices,
              .samples = samples_argmin}),
    extreme("max_with_indices", "The largest element along a dim, NaN if one is, and the index of the first of it.",
            {.lower = lower_position<true>,
             .reference = reference_position<true>,
             .gradient = by_rule("x", Ties::first),
             .samples = samples_extreme}),
    extreme("min_with_indices", "The smallest element along a dim, NaN if one is, and the index of the first of it.",
            {.lower = lower_position<false>,
             .reference = reference_position<false>,
             .gradient = by_rule("x", Ties::first),
             .samples = samples_extreme}),
};

}  // namespace

std::span<const Op> reduce_ops() { return reduce_records; }

}  // namespace kiln::ops
