// Softmax: whole in the graph, and three stages of one kernel when a backend fuses what it decomposes to.
#include <cmath>

#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

Status infer_softmax(InferContext &c) {
  KILN_TRY(c.axis(c.attr("dim").i64(), c.inputs[0].rank(), "dim").take_status());
  return infer_same(c);
}

// exp(x - max) / sum of it
Status decompose_softmax(DecomposeContext &c) {
  const ValueId x = c.node.inputs[0];
  const AttrMap along = {{"dims", ints({c.attr("dim").i64()})}, {"keepdim", true}};
  KILN_ASSIGN(ValueId max, c.add("max", {x}, along));
  KILN_ASSIGN(ValueId below, c.add("sub", {x, max}));
  KILN_ASSIGN(ValueId exp, c.add("exp", {below}));
  KILN_ASSIGN(ValueId sum, c.add("sum", {exp}, along));
  KILN_ASSIGN(ValueId y, c.add("div", {exp, sum}));
  c.results = {y};
  return {};
}

// x - max - log(sum(exp(x - max)))
Status decompose_log_softmax(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const AttrMap along = {{"dims", ints({c.attr("dim").i64()})}, {"keepdim", true}};
  const ValueId below = g("sub", {x, g("max", {x}, along)});
  return g.give({g("sub", {below, g("log", {g("sum", {g("exp", {below})}, along)})})});
}

template <bool of_logarithm>
Status reference_softmax(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  const size_t dim = dim_of(c, x.shape.size());
  const auto width = static_cast<size_t>(x.shape[dim]);
  std::vector<int64_t> outer = x.shape, strides = dense_strides(x.shape);
  const auto step = static_cast<size_t>(strides[dim]);
  if (width == 0) return {};
  outer[dim] = 1;
  const ReadElements<double> elements_of_x(x);
  const WriteElements<double> out(y);
  return with_wide(y, [&](auto wide) -> Status {
    using Wide = decltype(wide);
    return c.for_ranges(count_of(outer), x.shape[dim] * 8, [&](int64_t begin, int64_t end) -> Status {
      std::vector<double> in(width);
      std::vector<Wide> powers(width);
      walk_range<1>(outer, {strides}, begin, end, [&](size_t, auto at) {
        const auto place = [&](size_t k) { return static_cast<size_t>(at[0]) + k * step; };
        double max = -infinity;
        Wide sum = 0;
        for (size_t k = 0; k < width; ++k) in[k] = elements_of_x[place(k)];
        for (size_t k = 0; k < width; ++k) max = std::isnan(in[k]) ? in[k] : std::max(in[k], max);
        for (size_t k = 0; k < width; ++k) sum += powers[k] = std::exp(Wide(in[k]) - max);
        for (size_t k = 0; k < width; ++k)
          out.set(place(k), static_cast<double>(of_logarithm ? in[k] - max - std::log(sum) : powers[k] / sum));
      });
      return {};
    });
  });
}

void samples_softmax(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  out.push_back({.name = "rows", .inputs = {f32({7, 33})}});
  out.push_back({.name = "columns", .inputs = {f32({17, 9})}, .attrs = {{"dim", 0}}});
  out.push_back({.name = "middle", .inputs = {f32({3, 7, 5})}, .attrs = {{"dim", 1}}});
  out.push_back({.name = "vector", .inputs = {f32({257})}, .low = -20, .high = 20});
  out.push_back({.name = "one", .inputs = {f32({5, 1})}});
  out.push_back({.name = "no_rows", .inputs = {f32({0, 5})}});
  out.push_back({.name = "no_width", .inputs = {f32({5, 0})}});
  out.push_back({.name = "large_values", .inputs = {f32({3, 65})}, .low = 990, .high = 1010});
  out.push_back({.name = "symbolic", .inputs = {f32({n, m})}, .sizes = {{"n", 5}, {"m", 65}}});
  out.push_back({.name = "symbolic_one", .inputs = {f32({n, m})}, .sizes = {{"n", 1}, {"m", 1}}});
  out.push_back(
      {.name = "edges",
       .inputs = {f32({3, 3})},
       .given = {{0, f32_data({3, 3}, {-INFINITY, 1.f, 2.f, NAN, 1.f, 2.f, -INFINITY, -INFINITY, -INFINITY})}}});
}

const Op softmax_records[] = {
    {{.name = "softmax",
      .doc = "exp(x) divided by its sum along a dim; NaN where all of x is -inf.",
      .args = {{"x", "at least one dim", float_types}},
      .result_names = {"y"},
      .attrs = {{.name = "dim", .doc = "the dim whose elements add up to 1", .kind = AttrKind::i64, .fallback = -1}},
      .infer = infer_softmax},
     {.decompose = decompose_softmax,
      .reference = reference_softmax<false>,
      .gradient = by_rule("x"),
      .samples = samples_softmax}},

    {{.name = "log_softmax",
      .doc = "The logarithm of softmax, which does not overflow inside; NaN where all of x is -inf.",
      .args = {{"x", "at least one dim", float_types}},
      .result_names = {"y"},
      .attrs = {{.name = "dim", .doc = "the dim whose powers add up to 1", .kind = AttrKind::i64, .fallback = -1}},
      .infer = infer_softmax},
     {.decompose = decompose_log_softmax,
      .reference = reference_softmax<true>,
      .gradient = by_rule("x"),
      .samples = samples_softmax}},
};

}  // namespace

std::span<const Op> softmax_ops() { return softmax_records; }

}  // namespace kiln::ops
