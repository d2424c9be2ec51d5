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
  c.results = {make_type(DType::i64, {bins})};
  return {};
}
// Behind the last element of each number less before its first one.
Status decompose_bincount(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const TensorType type = c.type(x);
  const ValueId row = compose_row(g, x, type);
  const ValueId numbers = g("iota", {}, {{"shape", AttrValue(Shape{c.attr("bins").dim()})}, {"dtype", type.dtype}});
  return g.give({g("sub", {compose_search(g, row, numbers, true), compose_search(g, row, numbers, false)})});
}
Status reference_bincount(ReferenceContext &c) {
  std::vector<int64_t> &counts = c.results[0].i;
  for (const int64_t number : c.inputs[0]->i)
    if (number >= 0 && static_cast<uint64_t>(number) < counts.size()) ++counts[static_cast<size_t>(number)];
  return {};
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
}

// ---- histogram

Status infer_histogram(InferContext &c) {
  const Dim &bins = c.attr("bins").dim();
  const double min = c.attr("min").f64(), max = c.attr("max").f64();
  if (bins.is_integer() && bins.integer() < 1) return c.fail("bins is ", bins.text(), ", expected at least 1");
  KILN_TRY(require_at_most(c, 1, bins, "1 <= bins"));
  if (!(min < max) || !std::isfinite(max - min))
    return c.fail("min is ", min, " and max ", max, ", expected finite numbers, the lesser first");
  c.results = {make_type(DType::i64, {bins})};
  return {};
}
// Differences of how many elements lie before the edges of bins; the last bin has its upper edge, too. An edge in the
// upper half counts from max, so that both ends are exact.
Status decompose_histogram(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const TensorType type = c.type(x);
  const Dim &bins = c.attr("bins").dim();
  const DType wide = is_small_float(type.dtype) ? DType::f32 : type.dtype;
  const ValueId row = compose_row(g, g.convert(x, wide), type);
  const ValueId numbers = g("iota", {}, {{"shape", AttrValue(Shape{bins + 1})}, {"dtype", wide}});
  const ValueId min = g.number(numbers, c.attr("min").f64()), max = g.number(numbers, c.attr("max").f64());
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
  std::vector<int64_t> &counts = c.results[0].i;
  const double min = c.attr("min").f64(), max = c.attr("max").f64();
  const auto bins = static_cast<int64_t>(counts.size());
  const double step = (max - min) / static_cast<double>(bins);
  const auto edge = [&](int64_t number) {
    return 2 * number > bins ? max - step * static_cast<double>(bins - number)
                             : min + step * static_cast<double>(number);
  };
  for (const double value : x.f) {
    if (!(min <= value && value <= max)) continue;
    int64_t bin = 0;
    while (bin + 1 < bins && edge(bin + 1) <= value) ++bin;
    ++counts[static_cast<size_t>(bin)];
  }
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
  out.back().given = {{0, f32_data({8}, {-1.f, 1.f, 0.f, -0.f, NAN, INFINITY, -INFINITY, 1.5f})}};
}

AttrDef bins(std::string_view doc) { return {.name = "bins", .doc = doc, .kind = AttrKind::dim, .required = true}; }

const Op records[] = {
    {{.name = "bincount",
      .doc = "How often each number from 0 to bins - 1 is among the elements. Others are not counted, where PyTorch "
             "makes room for them.",
      .args = {{"x", "any shape", index_types}},
      .result_names = {"counts"},
      .attrs = {bins("how many numbers are counted")},
      .infer = infer_bincount},
     {.decompose = decompose_bincount,
      .reference = reference_bincount,
      .gradient = gives_integers,
      .samples = samples_bincount}},
    {{.name = "histogram",
      .doc =
          "How many elements lie in each of `bins` ranges of one width from min to max, each with its lower edge, the "
          "last with both; what lies outside, and NaN, is not counted. As torch.histc, but in i64, and never over "
          "the data's own range.",
      .args = {{"x", "any shape", float_types}},
      .result_names = {"counts"},
      .attrs = {bins("the number of ranges"),
                {.name = "min", .doc = "the first one's lower edge", .kind = AttrKind::f64, .required = true},
                {.name = "max", .doc = "the last one's upper edge", .kind = AttrKind::f64, .required = true}},
      .infer = infer_histogram},
     {.decompose = decompose_histogram,
      .reference = reference_histogram,
      .gradient = gives_integers,
      .samples = samples_histogram}},
};

}  // namespace

std::span<const Op> counting_ops() { return records; }

}  // namespace kiln::ops
