// Ops to which the order along a dim matters: running sums, and searches in what is sorted.
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// ---- cumsum

Status infer_cumsum(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_TRY(c.axis(c.attr("dim").i64(), x.rank(), "dim").take_status());
  c.results = {make_type(x.dtype, x.dims)};
  return accumulate_as_asked(c);
}

Status lower_cumsum(LowerContext &c) {
  c.compute.scan = static_cast<int32_t>(normal_axis(c.attr("dim").i64(), c.result.rank()));
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  c.body.yield(c.body.convert(c.load(0), c.result.dtype));
  return {};
}

Status reference_cumsum(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  const int64_t step = dense_strides(y.shape)[normal_axis(c.attr("dim").i64(), y.shape.size())];
  std::vector<int64_t> along(y.shape.size(), 0);
  along[normal_axis(c.attr("dim").i64(), y.shape.size())] = 1;
  return dispatch_wide(y, [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    using Wide = decltype(wide);
    std::vector<Wide> sums(static_cast<size_t>(y.size()));
    size_t k = 0;
    walk<1>(y.shape, {along}, [&](auto at) {
      const Wide before = at[0] == 0 ? Wide{} : sums[k - static_cast<size_t>(step)];
      sums[k] = add(before, Wide(converted<T>(x, k, y.dtype)));
      ++k;
    });
    std::ranges::transform(sums, elements<T>(y).begin(), [](Wide sum) { return static_cast<T>(sum); });
    return {};
  });
}

void samples_cumsum(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  auto sample = [&](const char *name, Shape shape, int64_t dim, std::map<std::string, int64_t> sizes = {}) {
    Sample made = sample_of(name, std::move(shape), {{"dim", dim}}, std::move(sizes));
    made.low = -1.5;
    made.high = 1.5;
    out.push_back(std::move(made));
  };
  sample("vector", {257}, 0);
  sample("rows", {9, 33}, -1);
  sample("columns", {17, 33}, 0);
  sample("middle", {3, 17, 5}, 1);
  sample("one", {5, 1}, 1);
  sample("empty", {3, 0}, 1);
  sample("nothing_left", {0, 3}, 1);
  sample("symbolic", {n, m}, 1, {{"n", 5}, {"m", 33}});
  sample("symbolic_none", {n, m}, 0, {{"n", 0}, {"m", 7}});
  out.push_back({.name = "integers", .inputs = {i64({5, 17})}, .attrs = {{"dim", 0}}});
  out.push_back(
      {.name = "booleans_counted", .inputs = {boolean({9, 33})}, .attrs = {{"dim", 1}, {"dtype", DType::i64}}});
  out.push_back({.name = "bytes_that_wrap",
                 .inputs = {make_type(DType::u8, {65})},
                 .attrs = {{"dim", 0}},
                 .int_low = 200,
                 .int_high = 256});
}

// ---- searchsorted

Status infer_searchsorted(InferContext &c) {
  const TensorType &sorted = c.inputs[0], &values = c.inputs[1];
  if (sorted.rank() == 0) return c.fail("sorted is ", sorted.text(), "; expected at least one dim");
  if (sorted.rank() > 1) {
    KILN_TRY(require_rank(c, 1, sorted.rank()));
    for (size_t d = 0; d + 1 < sorted.rank(); ++d)
      KILN_TRY(c.require_equal(sorted.dims[d], values.dims[d], str_cat("dim ", d, " of sorted and values")));
  }
  c.results = {make_type(DType::i64, values.dims)};
  return {};
}

Status lower_searchsorted(LowerContext &c) {
  const Shape &dims = c.inputs[0].dims;
  std::vector<Expr> row = dims.size() == 1 ? std::vector<Expr>{0} : c.axes();
  row.back() = 0;
  const uint64_t flags = c.attr("right").boolean() ? kernel::search_upper : kernel::SearchFlags{};
  c.body.yield(c.body.search(c.load(1, c.axes()), 0, std::move(row), dims.back(), flags));
  return {};
}

Status reference_searchsorted(ReferenceContext &c) {
  const RefTensor &sorted = *c.inputs[0], &values = *c.inputs[1];
  const bool right = c.attr("right").boolean();
  const auto count = static_cast<size_t>(sorted.shape.back());
  const size_t per_row =
      sorted.shape.size() == 1 ? values.i.size() + values.f.size() : static_cast<size_t>(values.shape.back());
  return dispatch(values, [&](auto zero) -> Status {
    using T = decltype(zero);
    const auto before = [](T a, T b) { return is_nan(b) ? !is_nan(a) : a < b; };  // NaN comes last
    std::vector<int64_t> &y = c.results[0].i;
    for (size_t k = 0; k < y.size(); ++k) {
      const auto row = elements<T>(sorted).subspan(k / per_row * count, count);
      const T value = elements<T>(values)[k];
      const auto end =
          right ? std::ranges::upper_bound(row, value, before) : std::ranges::lower_bound(row, value, before);
      y[k] = end - row.begin();
    }
    return {};
  });
}

void samples_searchsorted(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  for (const bool right : {false, true}) {
    auto sample = [&](const char *name, TensorType sorted, TensorType values, TensorData given,
                      std::map<std::string, int64_t> sizes = {}) {
      out.push_back({.name = str_cat(name, right ? "_right" : ""),
                     .inputs = {std::move(sorted), std::move(values)},
                     .attrs = {{"right", right}},
                     .sizes = std::move(sizes),
                     .low = -4,
                     .high = 9,
                     .int_low = -4,
                     .int_high = 9,
                     .given = {{0, std::move(given)}}});
    };
    const std::vector<float> five = {-2, 0, 1, 1, 7}, rows = {-2, 0, 1, 1, 7, -3, -3, -3, 2, 5, 1, 2, 3, 4, 5};
    sample("vector", f32({5}), f32({129}), f32_data({5}, five));
    sample("any_shape", f32({5}), f32({3, 7}), f32_data({5}, five));
    sample("scalar", f32({5}), f32({}), f32_data({5}, five));
    sample("rows", f32({3, 5}), f32({3, 17}), f32_data({3, 5}, rows));
    sample("in_nothing", f32({0}), f32({7}), f32_data({0}, {}));
    sample("for_nothing", f32({5}), f32({0}), f32_data({5}, five));
    sample("integers", i64({7}), i64({33}), i64_data({7}, {-3, -1, 0, 0, 0, 4, 8}));
    sample("symbolic", f32({n, m}), f32({n, 9}), f32_data({3, 5}, rows), {{"n", 3}, {"m", 5}});
    sample("edges", f32({n}), f32({n}), f32_data({8}, {-INFINITY, -1, -0.f, 0, 2, INFINITY, NAN, NAN}), {{"n", 8}});
    out.back().given.emplace(1, f32_data({8}, {NAN, INFINITY, -INFINITY, 0, -0.f, 2, 3, -1}));
  }
}

const Op records[] = {
    {{.name = "cumsum",
      .doc = "Running sums along a dim, each with its element: y[i] = x[0] + ... + x[i]; integers wrap.",
      .args = {{"x", "at least one dim", comparable_types}},
      .result_names = {"y"},
      .attrs = {{.name = "dim", .doc = "the dim to go along", .kind = AttrKind::i64, .required = true},
                accumulation_dtype()},
      .infer = infer_cumsum},
     {.lower = lower_cumsum, .reference = reference_cumsum, .samples = samples_cumsum}},

    {{.name = "searchsorted",
      .doc = "For each value how many elements of a sorted row are less than it or, if right, not greater: where it "
             "could be put in. NaN comes last. Of rows that are not sorted any number from 0 to their length.",
      .args = {{"sorted", "[..., n], in ascending order along the last dim", numeric_types},
               {"values", "[..., m], of the same leading dims; any shape where sorted has one dim", numeric_types}},
      .result_names = {"index"},
      .attrs = {{.name = "right", .doc = "behind equal elements", .kind = AttrKind::boolean, .fallback = false}},
      .infer = infer_searchsorted},
     {.lower = lower_searchsorted, .reference = reference_searchsorted, .samples = samples_searchsorted}},
};

}  // namespace

std::span<const Op> ordered_ops() { return records; }

}  // namespace kiln::ops
