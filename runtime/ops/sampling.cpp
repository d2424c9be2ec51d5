// Composites of random numbers: draws by weight, orders, and what is left out by chance.
#include <cmath>
#include <numeric>

#include "runtime/ops/composer.h"
#include "runtime/ops/random.h"

namespace kiln::ops {
namespace {

// The numbers of values in their order, those of equal ones in their own.
template <class T>
std::vector<int64_t> in_order(const std::vector<T> &values) {
  std::vector<int64_t> numbers(values.size());
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  const auto value = [&](int64_t k) { return values[static_cast<size_t>(k)]; };
  std::ranges::stable_sort(numbers, [&](int64_t a, int64_t b) { return value(a) < value(b); });
  return numbers;
}

// ---- multinomial

Status infer_multinomial(InferContext &c) {
  KILN_TRY(require_key(c, 1));
  const TensorType &weights = c.inputs[0];
  if (weights.rank() == 0) return c.fail("weights is ", weights.text(), ", expected [..., n]");
  KILN_TRY(require_at_most(c, 1, weights.dims.back(), "1 <= the last dim of weights"));
  const Dim &samples = c.attr("samples").dim();
  KILN_TRY(require_at_most(c, 0, samples, "0 <= samples"));
  if (!c.attr("replacement").boolean())
    KILN_TRY(require_at_most(c, samples, weights.dims.back(), "samples <= the last dim of weights"));
  c.results = {make_type(DType::i64, weights.dims)};
  c.results[0].dims.back() = samples;
  return {};
}

// A race: an index arrives after a time that is exponentially distributed with its weight as the rate. The next to
// arrive is each with the probability that its weight has among those of the others that are on their way.
Status decompose_race(DecomposeContext &c) {
  Composer g(c);
  const ValueId weights = c.node.inputs[0], zero = g.number(weights, 0);
  const TensorType type = c.type(weights);
  const ValueId u =
      g("uniform", {c.node.inputs[1], c.node.inputs[2]}, {{"shape", AttrValue(type.dims)}, {"dtype", type.dtype}});
  const ValueId time = g("div", {g("neg", {g("log1p", {g("neg", {u})})}), weights});
  const ValueId arrivals = g("where", {g("gt", {weights, zero}), time, g.number(weights, infinity)});
  return g.give(
      {g("slice", {g("argsort", {arrivals}, {{"dim", -1}})}, {{"dim", -1}, {"end", c.node.results[0].dims.back()}})});
}
Status decompose_multinomial(DecomposeContext &c) {
  if (!c.attr("replacement").boolean()) return decompose_race(c);
  Composer g(c);
  const TensorType weights = c.type(c.node.inputs[0]);
  const Dim &count = weights.dims.back();
  const ValueId sums = g("cumsum", {c.node.inputs[0]}, {{"dim", -1}});
  const ValueId total = g("slice", {sums}, {{"dim", -1}, {"start", count - 1}, {"end", count}});
  const ValueId u = g("uniform", {c.node.inputs[1], c.node.inputs[2]},
                      {{"shape", AttrValue(c.node.results[0].dims)}, {"dtype", weights.dtype}});
  const ValueId at = g("searchsorted", {sums, g("mul", {u, total})}, {{"right", true}});
  return g.give({g("minimum", {at, g.count(at, count - 1)})});
}
Status reference_race(ReferenceContext &c) {
  const RefTensor &weights = *c.inputs[0];
  const int64_t count = weights.shape.back(), samples = c.results[0].shape.back();
  const ReadElements<double> in(weights);
  const WriteElements<int64_t> out(c.results[0]);
  const auto run = [&](size_t row, size_t first) {
    std::vector<double> arrivals;
    for (size_t k = first; k < first + static_cast<size_t>(count); ++k) {
      const double u = unit_at(c, 1, static_cast<int64_t>(k), weights.dtype == DType::f64);
      arrivals.push_back(in[k] > 0 ? -std::log1p(-u) / in[k] : infinity);
    }
    const std::vector<int64_t> order = in_order(arrivals);
    for (size_t k = 0; k < static_cast<size_t>(samples); ++k) out.set(row * static_cast<size_t>(samples) + k, order[k]);
  };
  return walk_lines(c, weights.shape, weights.shape.size() - 1, run, 16);
}
Status reference_multinomial(ReferenceContext &c) {
  if (!c.attr("replacement").boolean()) return reference_race(c);
  const RefTensor &weights = *c.inputs[0];
  const int64_t count = weights.shape.back(), samples = c.results[0].shape.back();
  const bool wide = weights.dtype == DType::f64;
  const auto rounded = [&](double x) { return wide ? x : static_cast<double>(static_cast<float>(x)); };
  const ReadElements<double> in(weights);
  const auto draw = [&](int64_t k) {
    std::vector<double> sums;
    for (const double weight : line_at(in, static_cast<size_t>(k / samples * count), 1, count))
      sums.push_back(rounded((sums.empty() ? 0 : sums.back()) + weight));
    const double u = rounded(unit_at(c, 1, k, wide) * sums.back());
    return std::min(std::ranges::upper_bound(sums, u) - sums.begin(), count - 1);
  };
  return make_each<int64_t>(c, draw, count);
}

void samples_multinomial(SampleSink &out) {
  keyed_sample(out, "rows", {f32({3, 7})}, {{"samples", Dim(33)}}, true);
  keyed_sample(out, "vector", {f32({17})}, {{"samples", Dim(5)}}, false);
  keyed_sample(out, "one_class", {f32({2, 1})}, {{"samples", Dim(3)}}, true);
  keyed_sample(out, "symbolic", {f32({sym("n"), 5})}, {{"samples", Dim(sym("m"))}}, true, {{"n", 3}, {"m", 7}});
  const auto race = [&](const char *name, Shape weights, const Dim &samples, bool large,
                        std::map<std::string, int64_t> sizes = {}) {
    keyed_sample(out, name, {f32(std::move(weights))}, {{"samples", samples}, {"replacement", false}}, large,
                 std::move(sizes));
  };
  race("race", {3, 17}, 5, true);
  race("race_to_the_last", {2, 9}, 9, false);
  race("race_of_one", {1}, 1, true);
  race("race_to_nobody", {5}, 0, false);
  race("race_symbolic", {sym("n"), sym("k")}, sym("m"), true, {{"n", 2}, {"k", 7}, {"m", 3}});
  race("race_of_few", {6}, 6, true);
  out.back().given[0] = f32_data({6}, {0.f, INFINITY, -1.f, 0.5f, NAN, 2.f});
}

// ---- permutation

Status infer_permutation(InferContext &c) {
  KILN_TRY(require_key(c, 0));
  const Dim &n = c.attr("n").dim();
  KILN_TRY(require_at_most(c, 0, n, "0 <= n"));
  c.results = {make_type(DType::i64, {n})};
  return {};
}
Status decompose_permutation(DecomposeContext &c) {
  Composer g(c);
  const ValueId bits =
      g("random_bits", c.node.inputs, {{"shape", AttrValue(c.node.results[0].dims)}, {"dtype", DType::u64}});
  return g.give({g("argsort", {bits}, {{"dim", 0}})});
}
Status reference_permutation(ReferenceContext &c) {
  std::vector<uint64_t> bits;
  for (int64_t k = 0; k < c.results[0].size(); ++k) bits.push_back(bits_at(c, 0, k, true));
  give_all(c.results[0], in_order(bits));
  return {};
}

void samples_permutation(SampleSink &out) {
  keyed_sample(out, "some", {}, {{"n", Dim(65)}}, true);
  keyed_sample(out, "one", {}, {{"n", Dim(1)}}, false);
  keyed_sample(out, "none", {}, {{"n", Dim(0)}}, false);
  keyed_sample(out, "symbolic", {}, {{"n", Dim(sym("n"))}}, true, {{"n", 33}});
}

// ---- dropout

Status infer_dropout(InferContext &c) {
  KILN_TRY(require_key(c, 1));
  const double p = c.attr("p").f64();
  if (!(p >= 0 && p <= 1)) return c.fail("p is ", p, ", expected 0 to 1");
  KILN_TRY(infer_same(c));
  c.results.push_back(make_type(DType::boolean, c.inputs[0].dims));
  return {};
}

Status decompose_dropout(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const TensorType type = c.type(x);
  const double p = c.attr("p").f64();
  const ValueId u =
      g("uniform", {c.node.inputs[1], c.node.inputs[2]}, {{"shape", AttrValue(type.dims)}, {"dtype", type.dtype}});
  const ValueId kept = g("ge", {u, g.number(x, p)});
  const ValueId scaled = g("mul", {x, g.number(x, p < 1 ? 1 / (1 - p) : 0)});
  return g.give({g("where", {kept, scaled, g.number(x, 0)}), kept});
}
Status reference_dropout(ReferenceContext &c) {
  const double p = c.attr("p").f64();
  const bool wide = c.inputs[0]->dtype == DType::f64;
  const ReadElements<double> x(*c.inputs[0]);
  const WriteElements<int64_t> mask(c.results[1]);
  const auto drop = [&](int64_t k) {
    const bool kept = unit_at(c, 1, k, wide) >= (wide ? p : static_cast<double>(static_cast<float>(p)));
    mask.set(static_cast<size_t>(k), kept);
    return kept ? x[static_cast<size_t>(k)] * (1 / (1 - p)) : 0;
  };
  return make_each<double>(c, drop, 16);
}

void samples_dropout(SampleSink &out) {
  keyed_sample(out, "half", {f32({5, 33})}, {{"p", 0.5}}, true);
  keyed_sample(out, "none", {f32({17})}, {{"p", 0.0}}, false);
  keyed_sample(out, "all", {f32({17})}, {{"p", 1.0}}, true);
  keyed_sample(out, "symbolic", {f32({sym("n"), 3})}, {{"p", 0.25}}, true, {{"n", 5}});
}

// ---- records

const Op sampling_records[] = {
    {{.name = "multinomial",
      .doc =
          "For each row of weights indices into it, each as likely as its weight is of their sum. With replacement the "
          "first whose running sum is above uniform's number u times the sum; rows of weights below 0, or of 0 alone, "
          "give any index. Without (PyTorch's default) each at most once, in ascending order of -log(1 - u) / weight, "
          "of a number u for each weight; what is not above 0 comes last, where PyTorch refuses it. n numbers use up "
          "n / 4 counters, of f64 n / 2.",
      .args = keyed({{"weights", "[..., n], at least 0", float_types}}),
      .result_names = {"index"},
      .attrs = {{.name = "samples", .doc = "how many of each row", .kind = AttrKind::dim, .required = true},
                flag("replacement", "an index may come more than once", true)},
      .infer = infer_multinomial},
     {.decompose = decompose_multinomial,
      .reference = reference_multinomial,
      .gradient = gives_indices,
      .samples = samples_multinomial}},
    {{.name = "permutation",
      .doc = "The numbers 0 to n - 1 in random order, the same on every backend: that of random_bits' numbers of 64 "
             "bits. Uses "
             "up n / 2 counters.",
      .args = keyed({}),
      .result_names = {"index"},
      .attrs = {{.name = "n", .doc = "how many", .kind = AttrKind::dim, .required = true}},
      .infer = infer_permutation},
     {.decompose = decompose_permutation,
      .reference = reference_permutation,
      .gradient = gives_indices,
      .samples = samples_permutation}},
    {{.name = "dropout",
      .doc =
          "x / (1 - p), or 0 with probability p: where uniform's number is below it; and where x was kept, the same on "
          "every backend. n elements use up n / 4 counters, of f64 n / 2.",
      .args = keyed({{"x", "any shape", float_types}}),
      .result_names = {"y", "kept"},
      .attrs = {number("p", "the probability, 0 to 1", 0.5)},
      .infer = infer_dropout},
     {.decompose = decompose_dropout,
      .reference = reference_dropout,
      .gradient = by_rule("x"),
      .samples = samples_dropout}},
};

}  // namespace

std::span<const Op> sampling_ops() { return sampling_records; }

}  // namespace kiln::ops
