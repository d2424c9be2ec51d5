// How often elements have a value, or lie in a range of values: counted by searches in what is sorted.
#include <cmath>

#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

// The elements in ascending order, as one row.
ValueId compose_row(Composer &g, ValueId x, const TensorType &type) {
  return g("sort", {g("reshape", {x}, {{"shape", AttrValue(Shape{product_of(type.dims)})}})}, {{"dim", 0}});
}
ValueId compose_search(Composer &g, ValueId row, ValueId values, bool right) {
  return g("searchsorted", {row, values}, {{"right", right}});
}

// ---- bincount

Status infer_bincount(InferContext &c) {
  const Dim &bins = c.attr("bins").dim();
  if (bins.is_integer() && bins.integer() < 0) return c.fail("bins is ", bins.text(), ", expected at least 0");
  KILN_TRY(require_at_most(c, 0, bins, "0 <= bins"));
  const bool weighted = c.inputs.size() > 1;
  c.results = {make_type(weighted ? c.inputs[1].dtype : DType::i64, {bins})};
  if (!weighted) return {};
  const TensorType &x = c.inputs[0], &weights = c.inputs[1];
  KILN_TRY(require_rank(c, 1, x.rank()));
  for (size_t d = 0; d < x.rank(); ++d)
    KILN_TRY(c.require_equal(weights.dims[d], x.dims[d], str_cat("weights dim ", d, " and x dim ", d)));
  return {};
}
// What is not counted is added to a number more, which is cut off.
Status decompose_weighted(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0], weights = c.node.inputs[1];
  const Dim &bins = c.attr("bins").dim();
  const AttrMap flat{{"shape", AttrValue(Shape{product_of(c.type(x).dims)})}};
  const ValueId count = g.count(x, bins);
  const ValueId counts = g("and", {g("ge", {x, g.number(x, 0)}), g("lt", {x, count})});
  const ValueId index = g("reshape", {g("where", {counts, x, count})}, flat);
  const ValueId zeros = g.full(c.type(weights).dtype, {bins + 1}, 0);
  const ValueId sums = g("scatter_add", {zeros, index, g("reshape", {weights}, flat)}, {{"dim", 0}});
  return g.give({g("slice", {sums}, {{"dim", 0}, {"end", bins}})});
}
// Behind the last element of each number less before its first one.
Status decompose_bincount(DecomposeContext &c) {
  if (c.node.inputs.size() > 1) return decompose_weighted(c);
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const TensorType type = c.type(x);
  const ValueId row = compose_row(g, x, type);
  const ValueId numbers = g("iota", {}, {{"shape", AttrValue(Shape{c.attr("bins").dim()})}, {"dtype", type.dtype}});
  return g.give({g("sub", {compose_search(g, row, numbers, true), compose_search(g, row, numbers, false)})});
}
Status reference_bincount(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const bool weighted = c.inputs.size() > 1;
  const ReadElements<int64_t> numbers(x);
  return dispatch_wide(c.results[0], [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    const ReadElements<T> weights(*c.inputs.back());
    std::vector<decltype(wide)> sums(static_cast<size_t>(c.results[0].size()), wide);
    for (size_t k = 0; k < static_cast<size_t>(x.size()); ++k) {
      const int64_t number = numbers[k];
      if (number < 0 || static_cast<uint64_t>(number) >= sums.size()) continue;
      auto &sum = sums[static_cast<size_t>(number)];
      sum = add<decltype(wide)>(sum, weighted ? weights[k] : T(1));
    }
    give_all(c.results[0], sums);
    return {};
  });
}
void samples_bincount(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  const auto sample = [&](const char *name, Shape x, const Dim &bins, std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {i64(std::move(x))},
                   .attrs = {{"bins", bins}},
                   .sizes = std::move(sizes),
                   .int_low = -2,
                   .int_high = 11});
  };
  sample("vector", {257}, 9);
  sample("matrix", {9, 17}, 12);
  sample("scalar", {}, 3);
  sample("of_nothing", {0}, 4);
  sample("in_none", {9}, 0);
  sample("in_one", {65}, 1);
  sample("symbolic", {n}, m, {{"n", 33}, {"m", 7}});
  sample("of_32_bits", {65}, 9);
  out.back().inputs[0].dtype = DType::i32;
  const auto weighted = [&](const char *name, const Shape &x, const Dim &bins,
                            std::map<std::string, int64_t> sizes = {}) {
    sample(name, x, bins, std::move(sizes));
    out.back().inputs.push_back(f32(x));
  };
  weighted("weighted", {65}, 9);
  weighted("weighted_symbolic", {n, 3}, m, {{"n", 11}, {"m", 7}});
  weighted("weighted_of_32_bits", {33}, 9);
  out.back().inputs[0].dtype = DType::i32;
  weighted("weighted_by_what_is_no_number", {5}, 3);
  out.back().given = {{0, i64_data({5}, {0, 3, 1, -1, 2})}, {1, f32_data({5}, {1.f, NAN, INFINITY, -INFINITY, 0.5f})}};
}

// ---- histogram

Status infer_histogram(InferContext &c) {
  const Dim &bins = c.attr("bins").dim();
  const double min = c.attr("min").f64(), max = c.attr("max").f64();
  if (bins.is_integer() && bins.integer() < 1) return c.fail("bins is ", bins.text(), ", expected at least 1");
  KILN_TRY(require_at_most(c, 1, bins, "1 <= bins"));
  if (!(min <= max) || !std::isfinite(max - min))
    return c.fail("min is ", min, " and max ", max, ", expected finite numbers, the lesser first, or two equal ones");
  c.results = {make_type(DType::i64, {bins})};
  return {};
}
// The ends of the first and the last bin: as they are given, or the least and the largest finite element. One number
// is the middle of a range of width 2.
struct MinMax {
  ValueId min, max;
};
MinMax compose_ends(DecomposeContext &c, Composer &g, ValueId x) {
  const double min = c.attr("min").f64(), max = c.attr("max").f64();
  if (min < max) return {g.number(x, min), g.number(x, max)};
  const ValueId counts = g("isfinite", {x}), zero = g.number(x, 0), one = g.number(x, 1);
  const auto end = [&](const char *reduce, double over_none) {
    return g(reduce, {g("where", {counts, x, g.number(x, over_none)})});
  };
  const ValueId least = end("min", infinity), largest = end("max", -infinity);
  const ValueId has_none = g("gt", {least, largest}), is_one = g("ge", {least, largest});
  const auto moved = [&](const char *by, ValueId found) {
    return g("where", {is_one, g(by, {g("where", {has_none, zero, found}), one}), found});
  };
  return {moved("sub", least), moved("add", largest)};
}
// Differences of how many elements lie before the edges of bins; the last bin has its upper edge, too. An edge in the
// upper half counts from max, so that both ends are exact.
Status decompose_histogram(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const TensorType type = c.type(x);
  const Dim &bins = c.attr("bins").dim();
  const DType wide = is_small_float(type.dtype) ? DType::f32 : type.dtype;
  const ValueId converted = g.convert(x, wide), row = compose_row(g, converted, type);
  const ValueId numbers = g("iota", {}, {{"shape", AttrValue(Shape{bins + 1})}, {"dtype", wide}});
  const auto [min, max] = compose_ends(c, g, converted);
  const ValueId count = g.count(numbers, bins), step = g("div", {g("sub", {max, min}), count});
  const ValueId from_above = g("sub", {max, g("mul", {step, g("sub", {count, numbers})})});
  const ValueId from_below = g("add", {min, g("mul", {step, numbers})});
  const ValueId is_upper = g("gt", {g("mul", {numbers, g.number(numbers, 2)}), count});
  const ValueId edges = g("where", {is_upper, from_above, from_below});
  const ValueId is_last = g("eq", {numbers, count});
  const ValueId before =
      g("where", {is_last, compose_search(g, row, edges, true), compose_search(g, row, edges, false)});
  const ValueId above = g("slice", {before}, {{"dim", 0}, {"start", Dim(1)}, {"end", bins + 1}});
  return g.give({g("sub", {above, g("slice", {before}, {{"dim", 0}, {"end", bins}})})});
}
Status reference_histogram(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const ReadElements<double> in(x);
  const auto size = static_cast<size_t>(x.size());
  std::vector<int64_t> counts(static_cast<size_t>(c.results[0].size()));
  double min = c.attr("min").f64(), max = c.attr("max").f64();
  if (min == max) {
    min = infinity, max = -infinity;
    for (size_t k = 0; k < size; ++k)
      if (const double value = in[k]; std::isfinite(value)) min = std::min(min, value), max = std::max(max, value);
    if (min > max) min = max = 0;
    if (min == max) min -= 1, max += 1;
  }
  const auto bins = static_cast<int64_t>(counts.size());
  const double step = (max - min) / static_cast<double>(bins);
  const auto edge = [&](int64_t number) {
    return 2 * number > bins ? max - step * static_cast<double>(bins - number)
                             : min + step * static_cast<double>(number);
  };
  for (size_t k = 0; k < size; ++k) {
    const double value = in[k];
    if (!(min <= value && value <= max)) continue;
    int64_t bin = 0;
    while (bin + 1 < bins && edge(bin + 1) <= value) ++bin;
    ++counts[static_cast<size_t>(bin)];
  }
  give_all(c.results[0], counts);
  return {};
}
void samples_histogram(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  const auto sample = [&](const char *name, Shape x, const Dim &bins, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), {{"bins", bins}, {"min", -1.0}, {"max", 1.0}}, std::move(sizes)));
  };
  sample("vector", {257}, 8);
  sample("matrix", {9, 33}, 16);
  sample("scalar", {}, 2);
  sample("of_nothing", {0}, 4);
  sample("in_one", {65}, 1);
  sample("symbolic", {n}, m, {{"n", 129}, {"m", 4}});
  sample("edges", {8}, 2);
  const std::vector<float> edges = {-1.f, 1.f, 0.f, -0.f, NAN, INFINITY, -INFINITY, 1.5f};
  out.back().given = {{0, f32_data({8}, edges)}};
  const auto own_range = [&](const char *name, Shape x, const Dim &bins, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), {{"bins", bins}}, std::move(sizes)));
  };
  own_range("own_range", {129}, 5);
  own_range("own_range_of_one", {1}, 3);
  own_range("own_range_of_nothing", {0}, 4);
  own_range("own_range_symbolic", {n, 3}, m, {{"n", 21}, {"m", 7}});
  own_range("own_range_of_finite_numbers", {8}, 5);
  out.back().given = {{0, f32_data({8}, edges)}};
  own_range("own_range_of_no_number", {2}, 3);
  out.back().given = {{0, f32_data({2}, {NAN, INFINITY})}};
}

AttrDef bins(std::string_view doc) { return {.name = "bins", .doc = doc, .kind = AttrKind::dim, .required = true}; }

const Op counting_records[] = {
    {{.name = "bincount",
      .doc = "How often each number from 0 to bins - 1 is among the elements, or the sum of their weights. Others are "
             "not counted, where PyTorch makes room for them.",
      .args = {{"x", "any shape", index_types},
               {"weights", "of x's shape; counts are then of their dtype, without in i64", numeric_types,
                Arity::optional, /*same_dtype=*/false}},
      .result_names = {"counts"},
      .attrs = {bins("how many numbers are counted")},
      .infer = infer_bincount},
     {.decompose = decompose_bincount,
      .reference = reference_bincount,
      .gradient = through_decomposition(),
      .samples = samples_bincount}},
    {{.name = "histogram",
      .doc =
          "How many elements lie in each of `bins` ranges of one width from min to max, each with its lower edge, the "
          "last with both; what lies outside, and NaN, is not counted. As torch.histc, but in i64. Where min and max "
          "are equal, over the data's own range, from its least to its largest finite element (where PyTorch refuses "
          "others); of one number alone from 1 less to 1 more.",
      .args = {{"x", "any shape", float_types}},
      .result_names = {"counts"},
      .attrs = {bins("the number of ranges"),
                {.name = "min", .doc = "the first one's lower edge", .kind = AttrKind::f64, .fallback = 0.0},
                {.name = "max", .doc = "the last one's upper edge", .kind = AttrKind::f64, .fallback = 0.0}},
      .infer = infer_histogram},
     {.decompose = decompose_histogram,
      .reference = reference_histogram,
      .gradient = gives_integers,
      .samples = samples_histogram}},
};

}  // namespace

std::span<const Op> counting_ops() { return counting_records; }

}  // namespace kiln::ops
