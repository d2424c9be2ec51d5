// Reductions that take more than one step: whole in the graph, and composed of simpler ops for a backend.
#include <cmath>

#include "runtime/ops/composer.h"
#include "runtime/ops/reducing.h"

namespace kiln::ops {
namespace {

// Of an inner reduction: this node's dims, as they are asked for; and kept, so that its result broadcasts with x.
AttrMap same_dims(const DecomposeContext &c) { return {{"dims", c.attr("dims")}, {"keepdim", c.attr("keepdim")}}; }
AttrMap kept_dims(const DecomposeContext &c) { return {{"dims", c.attr("dims")}, {"keepdim", true}}; }

// A result with kept dims as the node's attributes want it.
ValueId as_asked(DecomposeContext &c, Composer &g, ValueId y, size_t rank) {
  if (c.attr("keepdim").boolean()) return y;
  std::vector<int64_t> dims;
  const std::vector<bool> reduced = reduced_dims(c.node.attrs, rank);
  for (size_t d = 0; d < rank; ++d)
    if (reduced[d]) dims.push_back(static_cast<int64_t>(d));
  return g("squeeze", {y}, {{"dims", ints(std::move(dims))}});
}

// ---- any, all

Status infer_logic(InferContext &c) {
  KILN_TRY(infer_reduce(c));
  c.results[0].dtype = DType::boolean;
  return {};
}
// The largest or smallest of bytes that are 0 or 1.
template <bool is_any>
Status decompose_logic(DecomposeContext &c) {
  Composer g(c);
  const ValueId truth = g.convert(g.convert(c.node.inputs[0], DType::boolean), DType::u8);
  return g.give({g.convert(g(is_any ? "max" : "min", {truth}, same_dims(c)), DType::boolean)});
}

// ---- var, std

// sum((x - mean)^2) / (n - correction), in two passes; NaN where that divisor is not positive.
ValueId compose_var(DecomposeContext &c, Composer &g) {
  const ValueId x = c.node.inputs[0];
  const Shape dims = c.type(x).dims;
  const double correction = c.attr("correction").f64();
  const ValueId centred = g("sub", {x, g("mean", {x}, kept_dims(c))});
  const ValueId squares = g("sum", {g("mul", {centred, centred})}, same_dims(c));
  const std::vector<bool> reduced = reduced_dims(c.node.attrs, dims.size());
  Dim n = 1;
  for (size_t d = 0; d < dims.size(); ++d)
    if (reduced[d]) n *= dims[d];
  if (n.is_integer()) {
    const double divisor = static_cast<double>(n.integer()) - correction;
    return g("div", {squares, g.number(x, divisor > 0 ? divisor : std::nan(""))});
  }
  const ValueId divisor = g("sub", {g.count(x, n), g.number(x, correction)});
  const ValueId is_positive = g("gt", {divisor, g.number(x, 0)});
  return g("div", {squares, g("where", {is_positive, divisor, g.number(x, std::nan(""))})});
}
Status decompose_var(DecomposeContext &c) {
  Composer g(c);
  return g.give({compose_var(c, g)});
}
Status decompose_std(DecomposeContext &c) {
  Composer g(c);
  return g.give({g("sqrt", {compose_var(c, g)})});
}
constexpr auto variance = [](ReferenceContext &c, const auto &group) {
  using Wide = std::decay_t<decltype(group)>::value_type;
  const Wide n = static_cast<Wide>(group.size()), divisor = n - static_cast<Wide>(c.attr("correction").f64());
  Wide sum = 0, squares = 0;
  for (const Wide x : group) sum += x;
  for (const Wide x : group) squares += (x - sum / n) * (x - sum / n);
  return divisor > 0 ? squares / divisor : static_cast<Wide>(std::nan(""));
};
constexpr auto deviation = [](ReferenceContext &c, const auto &group) { return std::sqrt(variance(c, group)); };

Status infer_var(InferContext &c) {
  KILN_TRY(require_finite(c, "correction"));
  return infer_reduce(c);
}

// ---- logsumexp, norm

// max + log(sum(exp(x - max))), where an infinite max is left out: log(sum(exp(x))) then has the right infinity.
Status decompose_logsumexp(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const size_t rank = c.type(x).rank();
  const ValueId max = g("max", {x}, kept_dims(c));
  const ValueId is_infinite = g("eq", {g("abs", {max}), g.number(x, infinity)});
  const ValueId shift = g("where", {is_infinite, g.number(x, 0), max});
  const ValueId sum = g("sum", {g("exp", {g("sub", {x, shift})})}, kept_dims(c));
  return g.give({as_asked(c, g, g("add", {g("log", {sum}), shift}), rank)});
}
constexpr auto log_of_sum = [](ReferenceContext &, const auto &group) {
  using Wide = std::decay_t<decltype(group)>::value_type;
  Wide most = static_cast<Wide>(-infinity), sum = 0;
  for (const Wide x : group) most = larger(most, x);
  if (std::isinf(static_cast<double>(most))) most = 0;
  for (const Wide x : group) sum += std::exp(x - most);
  return std::log(sum) + most;
};

Status decompose_norm(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const double p = c.attr("p").f64();
  const ValueId size = g("abs", {x}), zero = g.number(x, 0);
  const auto sum = [&](ValueId of) { return g("sum", {of}, same_dims(c)); };
  if (p == infinity) return g.give({g("maximum", {g("max", {size}, same_dims(c)), zero})});
  if (p == -infinity) return g.give({g("min", {size}, same_dims(c))});
  if (p == 0) return g.give({sum(g.convert(g("ne", {x, zero}), c.type(x).dtype))});
  if (p == 1) return g.give({sum(size)});
  if (p == 2) return g.give({g("sqrt", {sum(g("mul", {x, x}))})});
  return g.give({g("pow", {sum(g("pow", {size, g.number(x, p)})), g.number(x, 1 / p)})});
}
constexpr auto norm_of_group = [](ReferenceContext &c, const auto &group) {
  using Wide = std::decay_t<decltype(group)>::value_type;
  const double p = c.attr("p").f64();
  Wide most = 0, least = static_cast<Wide>(infinity), sum = 0;
  for (const Wide x : group) {
    most = larger(most, std::abs(x));
    least = smaller(least, std::abs(x));
    sum += p == 0 ? Wide(x != 0) : p == 1 ? std::abs(x) : p == 2 ? x * x : std::pow(std::abs(x), static_cast<Wide>(p));
  }
  if (std::isinf(p)) return p > 0 ? most : least;
  return p == 0 || p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / static_cast<Wide>(p));
};
Status infer_norm(InferContext &c) {
  if (std::isnan(c.attr("p").f64())) return c.fail("p is NaN, expected a number or an infinity");
  return infer_reduce(c);
}

// ---- samples

void over_nothing(SampleSink &out) {
  out.push_back({.name = "over_nothing", .inputs = {f32({3, 0})}, .attrs = {{"dims", ints({1})}}});
  out.push_back({.name = "over_symbolic_nothing",
                 .inputs = {f32({3, sym("n")})},
                 .attrs = {{"dims", ints({1})}},
                 .sizes = {{"n", 0}}});
}
void samples_any_and_all(SampleSink &out) {
  const Dim n = sym("n");
  reduction_samples(out);
  over_nothing(out);
  out.push_back({.name = "booleans", .inputs = {boolean({9, 4})}, .attrs = {{"dims", ints({1})}}});
  out.push_back({.name = "integers", .inputs = {i64({33, n})}, .attrs = {{"dims", ints({1})}}, .sizes = {{"n", 2}}});
  out.push_back({.name = "edges",
                 .inputs = {f32({4, 2})},
                 .attrs = {{"dims", ints({1})}},
                 .given = {{0, f32_data({4, 2}, {0.f, -0.f, NAN, 0.f, 1e-40f, 1.f, NAN, INFINITY})}}});
}
void samples_var(SampleSink &out) {
  const Dim n = sym("n");
  reduction_samples(out);
  over_nothing(out);
  const auto with = [&](const char *name, Shape shape, double correction, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(
        sample_of(name, std::move(shape), {{"dims", ints({1})}, {"correction", correction}}, std::move(sizes)));
  };
  with("population", {5, 33}, 0);
  with("few", {5, 2}, 2);
  with("fewer", {5, 2}, 3);
  with("fraction", {5, 17}, 1.5);
  with("symbolic_few", {5, n}, 3, {{"n", 2}});
  with("symbolic_population", {5, n}, 0, {{"n", 9}});
  out.push_back(
      {.name = "far_from_zero", .inputs = {f32({3, 65})}, .attrs = {{"dims", ints({1})}}, .low = 1000, .high = 1001});
}
void samples_logsumexp(SampleSink &out) {
  reduction_samples(out);
  over_nothing(out);
  out.push_back({.name = "large", .inputs = {f32({5, 33})}, .attrs = {{"dims", ints({1})}}, .low = 800, .high = 1000});
  out.push_back(
      {.name = "edges",
       .inputs = {f32({4, 2})},
       .attrs = {{"dims", ints({1})}},
       .given = {{0, f32_data({4, 2}, {-INFINITY, -INFINITY, INFINITY, 1.f, NAN, 1.f, INFINITY, -INFINITY})}}});
}
void samples_norm(SampleSink &out) {
  reduction_samples(out);
  over_nothing(out);
  for (const double p : {0.0, 1.0, 3.0, 0.5, -1.0, infinity, -infinity})
    out.push_back(sample_of(str_cat("p_", p).c_str(), {5, 33}, {{"dims", ints({1})}, {"p", p}}, {}));
  out.push_back({.name = "edges",
                 .inputs = {f32({3, 2})},
                 .attrs = {{"dims", ints({1})}},
                 .given = {{0, f32_data({3, 2}, {NAN, 1.f, -INFINITY, 2.f, 0.f, -0.f})}}});
}

const AttrDef correction = {.name = "correction",
                            .doc = "taken from the number of elements in the divisor",
                            .kind = AttrKind::f64,
                            .fallback = 1.0};

const Op statistics_records[] = {
    reduction("any", "Whether an element is not 0; NaN is not. False over no elements.", comparable_types,
              reduce_attrs(), infer_logic,
              {.decompose = decompose_logic<true>,
               .reference = reference_of_groups<[](ReferenceContext &, const auto &group) {
                 return std::ranges::any_of(group, [](auto x) { return x != 0; });
               },
                                                /*of_floats=*/false>,
               .gradient = gives_booleans,
               .samples = samples_any_and_all}),
    reduction("all", "Whether no element is 0; NaN is not. True over no elements.", comparable_types, reduce_attrs(),
              infer_logic,
              {.decompose = decompose_logic<false>,
               .reference = reference_of_groups<[](ReferenceContext &, const auto &group) {
                 return std::ranges::all_of(group, [](auto x) { return x != 0; });
               },
                                                /*of_floats=*/false>,
               .gradient = gives_booleans,
               .samples = samples_any_and_all}),
    reduction("var", "The mean square distance from the mean, over n - correction; NaN where that is not above 0.",
              float_types, reduce_attrs_and({correction}), infer_var,
              {.decompose = decompose_var,
               .reference = reference_of_groups<variance>,
               .gradient = through_decomposition(),
               .samples = samples_var}),
    reduction("std", "The square root of var.", float_types, reduce_attrs_and({correction}), infer_var,
              {.decompose = decompose_std,
               .reference = reference_of_groups<deviation>,
               .gradient = by_rule("x"),
               .samples = samples_var}),
    reduction("logsumexp", "log(sum(exp(x))), which does not overflow inside; -infinity over no elements.", float_types,
              reduce_attrs(), infer_reduce,
              {.decompose = decompose_logsumexp,
               .reference = reference_of_groups<log_of_sum>,
               .gradient = by_rule("x"),
               .samples = samples_logsumexp}),
    reduction("norm",
              "sum(|x|^p)^(1/p): the number of elements that are not 0 for p = 0, the largest and smallest |x| for "
              "p = infinity and -infinity; over no elements 0, and infinity for p = -infinity.",
              float_types,
              reduce_attrs_and({{.name = "p", .doc = "the exponent", .kind = AttrKind::f64, .fallback = 2.0}}),
              infer_norm,
              {.decompose = decompose_norm,
               .reference = reference_of_groups<norm_of_group>,
               .gradient = by_rule("x", Ties::even),
               .samples = samples_norm}),
};

}  // namespace

std::span<const Op> statistics_ops() { return statistics_records; }

}  // namespace kiln::ops
