// Scans along a dim: running sums, products, extremes.
#include <cmath>

#include "runtime/ops/family.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

using kernel::Core;

Status infer_running(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_TRY(c.axis(c.attr("dim").i64(), x.rank(), "dim").take_status());
  c.results = {make_type(x.dtype, x.dims)};
  return {};
}
Status infer_running_accumulation(InferContext &c) {
  KILN_TRY(infer_running(c));
  return accumulate_as_asked(c);
}
Status infer_running_extreme(InferContext &c) {
  KILN_TRY(infer_running(c));
  c.results.push_back(make_type(DType::i64, c.inputs[0].dims));
  return {};
}

// ---- cumsum, cumprod

template <Core combine>
Status lower_accumulation(LowerContext &c) {
  c.compute.scan = static_cast<int32_t>(dim_of(c, c.result.rank()));
  c.compute.carriers = kernel::carriers_of(combine, c.result.dtype);
  if constexpr (combine == Core::add) {
    c.compute.carriers.exclusive = c.attr("exclusive").boolean();
    c.compute.carriers.reverse = c.attr("reverse").boolean();
  }
  c.body.yield(c.body.convert(c.load(0), c.result.dtype));
  return {};
}

template <Core combine>
Status reference_accumulation(ReferenceContext &c) {
  constexpr bool sums = combine == Core::add;
  const bool exclusive = sums && c.attr("exclusive").boolean(), reverse = sums && c.attr("reverse").boolean();
  RefTensor &y = c.results[0];
  const size_t dim = dim_of(c, y.shape.size()), step = step_along(y.shape, dim),
               count = static_cast<size_t>(y.shape[dim]);
  return dispatch_wide(y, [&](auto zero, auto wide) {
    using T = decltype(zero);
    using Wide = decltype(wide);
    const Converted<T> in(*c.inputs[0], y.dtype);
    const WriteElements<T> out(y);
    return walk_lines(c, y.shape, dim, [&](size_t, size_t first) {
      Wide total = sums ? 0 : 1;
      for (size_t j = 0; j < count; ++j) {
        const size_t k = first + (reverse ? count - 1 - j : j) * step;
        const Wide before = total, value = Wide(in[k]);
        total = sums ? add(before, value) : mul(before, value);
        out.set(k, static_cast<T>(exclusive ? before : total));
      }
    });
  });
}

// ---- cummax, cummin

// The right side wins unless it is exceeded: of equals the last. NaN exceeds all but NaN.
template <bool of_largest>
Status lower_running_extreme(LowerContext &c) {
  const size_t dim = dim_of(c, c.result.rank());
  const DType type = c.result.dtype;
  c.compute.scan = static_cast<int32_t>(dim);
  kernel::Carriers &carriers = c.compute.carriers;
  carriers.types = {type, DType::i64};
  carriers.identities = {kernel::immediate_of(type, of_largest ? -infinity : infinity), 0};
  kernel::BodyBuilder body(carriers.combine);
  const auto carrier = [&](uint32_t number) { return Term(body, body.carrier(carriers.types[number % 2], number)); };
  const Term left = carrier(0), left_index = carrier(1), right = carrier(2), right_index = carrier(3);
  const Term holds = of_largest ? right >= left : right <= left;
  const Term wins = (right != right) | holds;
  body.yield(select(wins, right, left).value());
  body.yield(select(wins, right_index, left_index).value());
  c.body.yield(c.load(0));
  c.body.yield(c.body.index(c.axis(dim)));
  return {};
}

template <bool of_largest>
Status reference_running_extreme(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const size_t dim = dim_of(c, x.shape.size()), step = step_along(x.shape, dim);
  const WriteElements<int64_t> places(c.results[1]);
  return dispatch(x, [&](auto zero) {
    using T = decltype(zero);
    const ReadElements<T> in(x);
    const WriteElements<T> values(c.results[0]);
    return walk_lines(c, x.shape, dim, [&](size_t, size_t first) {
      T held = in[first];
      int64_t best = 0;
      for (int64_t j = 0; j < x.shape[dim]; ++j) {
        const size_t k = first + static_cast<size_t>(j) * step;
        const T value = in[k];
        if (is_nan(value) || (!is_nan(held) && (of_largest ? !(value < held) : !(held < value)))) {
          held = value;
          best = j;
        }
        values.set(k, held);
        places.set(k, best);
      }
    });
  });
}

// ---- logcumsumexp

// What is carried is the largest element so far, the sum of exp(x - largest), and, to be stored, the logarithm of both.
Status lower_logcumsumexp(LowerContext &c) {
  const DType type = c.result.dtype, wide = is_small_float(type) ? DType::f32 : type;
  c.compute.scan = static_cast<int32_t>(dim_of(c, c.result.rank()));
  c.compute.results[0].value = 2;
  kernel::Carriers &carriers = c.compute.carriers;
  const uint64_t least = kernel::immediate_of(wide, -infinity);
  carriers.types = {wide, wide, type};
  carriers.identities = {least, kernel::immediate_of(wide, 0), kernel::immediate_of(type, -infinity)};
  kernel::BodyBuilder body(carriers.combine);
  const auto carrier = [&](uint32_t number) { return Term(body, body.carrier(wide, number)); };
  const Term left = carrier(0), left_sum = carrier(1), right = carrier(3), right_sum = carrier(4);
  const Term largest = max(left, right);
  const Term factor = select(left == right, 1.0, exp(min(left, right) - largest));  // of the lesser's sum
  const Term left_leads = left >= right;
  const Term sum = select(left_leads, left_sum, left_sum * factor) + select(left_leads, right_sum * factor, right_sum);
  body.yield(largest.value());
  body.yield(sum.value());
  body.yield((largest + log(sum)).as(type).value());
  const int x = c.load(0);
  c.body.yield(c.body.convert(x, wide));
  c.body.yield(c.body.constant(wide, 1));
  c.body.yield(x);
  return {};
}

Status reference_logcumsumexp(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const size_t dim = dim_of(c, x.shape.size()), step = step_along(x.shape, dim);
  const ReadElements<double> in(x);
  const WriteElements<double> out(c.results[0]);
  return with_wide(x, [&](auto zero) {
    using Wide = decltype(zero);
    const auto scan = [&](size_t, size_t first) {
      Wide total = static_cast<Wide>(-infinity);
      for (size_t j = 0; j < static_cast<size_t>(x.shape[dim]); ++j) {
        const size_t k = first + j * step;
        const Wide value = static_cast<Wide>(in[k]), high = larger(total, value), low = smaller(total, value);
        total = std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
        out.set(k, static_cast<double>(total));
      }
    };
    return walk_lines(c, x.shape, dim, scan, 8);
  });
}

// ---- samples

void scan_samples(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  const auto sample = [&](const char *name, Shape shape, int64_t dim, std::map<std::string, int64_t> sizes = {}) {
    Sample made = sample_of(name, std::move(shape), {{"dim", dim}}, std::move(sizes));
    made.low = -1.5;
    made.high = 1.5;
    out.push_back(std::move(made));
  };
  sample("rows", {9, 33}, -1);
  sample("columns", {17, 33}, 0);
  sample("middle", {3, 17, 5}, 1);
  sample("one", {5, 1}, 1);
  sample("empty", {3, 0}, 1);
  sample("nothing_left", {0, 3}, 1);
  sample("symbolic", {n, m}, 1, {{"n", 5}, {"m", 33}});
  sample("symbolic_none", {n, m}, 0, {{"n", 0}, {"m", 7}});
}
void samples_running_accumulation(SampleSink &out) {
  scan_samples(out);
  out.push_back({.name = "integers", .inputs = {i64({5, 17})}, .attrs = {{"dim", 0}}});
  out.push_back(
      {.name = "booleans_counted", .inputs = {boolean({9, 33})}, .attrs = {{"dim", 1}, {"dtype", DType::i64}}});
  out.push_back({.name = "bytes_that_wrap",
                 .inputs = {make_type(DType::u8, {65})},
                 .attrs = {{"dim", 0}},
                 .int_low = 200,
                 .int_high = 256});
}
void samples_cumsum(SampleSink &out) {
  const Dim n = sym("n");
  samples_running_accumulation(out);
  out.push_back({.name = "vector", .inputs = {f32({257})}, .attrs = {{"dim", 0}}, .low = -1.5, .high = 1.5});
  for (const bool exclusive : {false, true}) {
    const AttrMap attrs = {{"dim", 1}, {"exclusive", exclusive}, {"reverse", true}};
    const std::string kind = exclusive ? "exclusive_" : "";
    out.push_back({.name = kind + "reverse", .inputs = {i64({5, 17})}, .attrs = attrs});
    out.push_back({.name = kind + "reverse_symbolic", .inputs = {f32({3, n})}, .attrs = attrs, .sizes = {{"n", 9}}});
  }
  out.push_back({.name = "exclusive", .inputs = {f32({9, 17})}, .attrs = {{"dim", 0}, {"exclusive", true}}});
  out.push_back(
      {.name = "exclusive_one", .inputs = {i64({n})}, .attrs = {{"dim", 0}, {"exclusive", true}}, .sizes = {{"n", 1}}});
}
void samples_running_extreme(SampleSink &out) {
  scan_samples(out);
  out.push_back({.name = "ties", .inputs = {i64({5, 33})}, .attrs = {{"dim", 1}}, .int_low = 0, .int_high = 4});
  out.push_back({.name = "bytes", .inputs = {make_type(DType::u8, {7, 9})}, .attrs = {{"dim", 0}}, .int_low = 0});
  out.push_back({.name = "edges",
                 .inputs = {f32({4, 4})},
                 .attrs = {{"dim", 1}},
                 .given = {{0, f32_data({4, 4}, {1.f, NAN, 2.f, NAN, -INFINITY, -INFINITY, INFINITY, INFINITY, 0.f,
                                                 -0.f, 0.f, -1.f, NAN, INFINITY, 1.f, -INFINITY})}}});
}
void samples_logcumsumexp(SampleSink &out) {
  scan_samples(out);
  out.push_back({.name = "large", .inputs = {f32({3, 33})}, .attrs = {{"dim", 1}}, .low = 800, .high = 1000});
  out.push_back({.name = "far_apart", .inputs = {f32({3, 33})}, .attrs = {{"dim", 1}}, .low = -500, .high = 500});
  out.push_back({.name = "edges",
                 .inputs = {f32({4, 3})},
                 .attrs = {{"dim", 1}},
                 .given = {{0, f32_data({4, 3}, {-INFINITY, -INFINITY, 1.f, 1.f, INFINITY, INFINITY, 1.f, NAN, 2.f,
                                                 INFINITY, -INFINITY, 0.f})}}});
}

Op running_extreme(std::string_view name, std::string_view doc, OpMeaning meaning) {
  return {{.name = name,
           .doc = doc,
           .args = {{"x", "at least one dim", numeric_types}},
           .result_names = {"values", "indices"},
           .attrs = {dim_attr("the dim to go along")},
           .infer = infer_running_extreme},
          meaning};
}

const Op scans_records[] = {
    {{.name = "cumsum",
      .doc = "Running sums along a dim, each with its element: y[i] = x[0] + ... + x[i]; integers wrap.",
      .version = 2,
      .args = {{"x", "at least one dim", comparable_types}},
      .result_names = {"y"},
      .attrs = {dim_attr("the dim to go along"), accumulation_dtype(),
                flag("exclusive", "each without its element", false),
                flag("reverse", "from the last to the first", false)},
      .infer = infer_running_accumulation},
     {.lower = lower_accumulation<Core::add>,
      .reference = reference_accumulation<Core::add>,
      .gradient = by_rule("x"),
      .samples = samples_cumsum}},
    {{.name = "cumprod",
      .doc = "Running products along a dim, each with its element: y[i] = x[0] * ... * x[i]; integers wrap.",
      .args = {{"x", "at least one dim", comparable_types}},
      .result_names = {"y"},
      .attrs = {dim_attr("the dim to go along"), accumulation_dtype()},
      .infer = infer_running_accumulation},
     {.lower = lower_accumulation<Core::mul>,
      .reference = reference_accumulation<Core::mul>,
      .gradient = by_rule("x"),
      .samples = samples_running_accumulation}},
    running_extreme(
        "cummax", "The largest element so far along a dim, NaN from the first NaN on; and the index of the last of it.",
        {.lower = lower_running_extreme<true>,
         .reference = reference_running_extreme<true>,
         .gradient = by_rule("x", Ties::last),
         .samples = samples_running_extreme}),
    running_extreme(
        "cummin",
        "The smallest element so far along a dim, NaN from the first NaN on; and the index of the last of it.",
        {.lower = lower_running_extreme<false>,
         .reference = reference_running_extreme<false>,
         .gradient = by_rule("x", Ties::last),
         .samples = samples_running_extreme}),
    {{.name = "logcumsumexp",
      .doc = "log(exp(x[0]) + ... + exp(x[i])) along a dim, which does not overflow inside.",
      .args = {{"x", "at least one dim", float_types}},
      .result_names = {"y"},
      .attrs = {dim_attr("the dim to go along")},
      .infer = infer_running},
     {.lower = lower_logcumsumexp,
      .reference = reference_logcumsumexp,
      .gradient = by_rule("x"),
      .samples = samples_logcumsumexp}},
};

}  // namespace

std::span<const Op> scans_ops() { return scans_records; }

}  // namespace kiln::ops
