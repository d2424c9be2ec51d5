#include "tests/backend/random/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "runtime/passes/nested_graphs.h"
#include "tests/backend/backends.h"
#include "tests/backend/random/dice.h"
#include "tests/backend/random/propose.h"

namespace kiln::testing {
namespace {

using Tensors = std::vector<RefTensor>;

constexpr int pairs = 2;                // of runs with opposite errors
constexpr double error_part = 0.1;      // of an op's tolerance: 1e-6 where it is 1e-5, 16 units in the last place
constexpr double tolerance_factor = 8;  // of the largest distance that was seen
constexpr double infinite = std::numeric_limits<double>::infinity();

// How an op's results come to be, told from its lowering.
struct Rounding {
  double error = 0;       // relative; 0: it only moves, chooses or counts
  bool operands = false;  // its operands have the error, too: what is added up may cancel
  bool product = false;   // of many elements
  bool in_order = false;  // one after the other, perhaps all elements: an error that grows with their number
};

// Whether a map adds up several elements of one operand.
bool adds_elements(const kernel::Body &body) {
  const bool adds = std::ranges::any_of(body.values, [](const kernel::Value &v) {
    return (v.op == kernel::Core::add || v.op == kernel::Core::sub) && dtype_info(v.type).is_float;
  });
  std::map<uint16_t, int> loads;
  for (const kernel::Value &v : body.values)
    if (v.op == kernel::Core::load && dtype_info(v.type).is_float) ++loads[v.access.buffer];
  return adds && std::ranges::any_of(loads, [](const auto &of_operand) { return of_operand.second > 1; });
}

// Whether a map adds what a function makes of operands to one of them: that may cancel (logaddexp of x and x, where x
// is near -log 2), and what is left has the error of what went in.
bool adds_function(const kernel::Body &body) {
  std::vector<bool> loads(body.values.size()), functions(body.values.size());  // on what each value depends
  for (size_t k = 0; k < body.values.size(); ++k) {
    const kernel::Value &v = body.values[k];
    int loaded = 0;
    for (const int32_t arg : v.args) {
      if (arg < 0) continue;
      loaded += loads[static_cast<size_t>(arg)];
      if (functions[static_cast<size_t>(arg)]) functions[k] = true;
    }
    const bool adds = v.op == kernel::Core::add || v.op == kernel::Core::sub;
    if (adds && dtype_info(v.type).is_float && loaded == 2 && functions[k]) return true;
    loads[k] = loaded > 0 || v.op == kernel::Core::load;
    if (loaded > 0 && core_info(v.op).kind == kernel::CoreClass::function) functions[k] = true;
  }
  return false;
}

bool multiplies(const kernel::Body &combine) {
  return combine.values.size() == 3 && combine.values[2].op == kernel::Core::mul;  // of two carriers
}

Rounding rounding_of(const Op &op) {
  Rounding all;
  for (const Sample &sample : known_samples(op)) {
    AttrMap attrs = sample.attrs;
    if (!complete_attrs(op, attrs).ok()) continue;
    const Result<Inferred> inferred = infer(op, sample.inputs, attrs);
    if (!inferred.ok()) continue;
    kernel::Compute compute;
    compute.results[0].dtype = inferred->results[0].dtype;
    compute.dims = inferred->results[0].dims;
    LowerContext context{op, sample.inputs, inferred->results[0], attrs, compute, kernel::BodyBuilder(compute.body)};
    if (!op.lower(context).ok()) continue;
    using Mode = kernel::Store::Mode;
    const auto mode = compute.scatter ? compute.scatter->mode : Mode::plain;
    const bool adds_up = compute.contract || kernel::rounds(compute.carriers.combine) || mode == Mode::add ||
                         mode == Mode::mul || adds_elements(compute.body) || adds_function(compute.body);
    if (!adds_up && !kernel::rounds(compute.body)) continue;
    all.error = std::max(all.error, error_part * tolerance_of(sample, DType::f32));
    all.operands |= adds_up;
    all.product |= multiplies(compute.carriers.combine);
    all.in_order |= mode == Mode::add || mode == Mode::mul;
  }
  return all;
}

const Rounding &cached_rounding_of(const Op &op) {
  static std::map<const Op *, Rounding> all;
  auto [at, is_new] = all.try_emplace(&op);
  if (is_new && op.lower) at->second = rounding_of(op);
  return at->second;
}

// What a type of floats that is computed in adds to that.
struct Precision {
  int coarse_bits;       // of the run that rounds coarsely: errors of up to error_part as well
  double last_rounding;  // of the result itself, relative
  double smallest;       // what is smaller may be 0
  double step = 0;       // between 16-bit neighbours, relative: to which one an element is rounded, errors decide
};
Precision precision_of(DType type) {
  if (type == DType::f64) return {46, 0x1p-51, std::numeric_limits<double>::min()};
  if (type == DType::f32) return {19, 0x1p-22, std::numeric_limits<float>::min()};
  // Rounded by a convert, see disturb().
  if (type == DType::bf16) return {19, 0, std::numeric_limits<float>::min(), 0x1p-7};
  return {19, 0, 0, 0x1p-10};
}

double error_of(const Rounding &rounding, DType type) {
  return type == DType::f64 ? std::min(rounding.error, error_part * tolerance_of(Sample(), type)) : rounding.error;
}

// Whether a conversion rounds what was computed: its operand's error decides to which side.
bool rounds_computed(const Graph &graph, const Node &node, const ReferenceContext &c) {
  return node.op->name == "convert" && graph.find(node.inputs[0].node)->kind == Node::Kind::op &&
         c.inputs[0]->is_float() && c.results[0].is_float() &&
         size_of(c.results[0].dtype) < size_of(c.inputs[0]->dtype);
}

double largest_of(std::span<const RefTensor *const> tensors) {
  double largest = 0;
  for (const RefTensor *tensor : tensors)
    for (double x : tensor->f)
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  return largest;
}

// Of the error of a sum of all elements of a tensor, one after the other.
double growth_of(std::span<const RefTensor *const> tensors) {
  int64_t most = 0;
  for (const RefTensor *tensor : tensors) most = std::max(most, tensor->size());
  return std::max(1.0, std::sqrt(static_cast<double>(most)) / 10);
}

// To a whole number of steps, of which there are 2^bits to the power of two above x and `scale`; to 0 what may be that.
double rounded_coarsely(double x, double scale, int bits, double smallest) {
  if (std::abs(x) < smallest) return 0;
  int exponent = 0;
  std::frexp(std::max(std::abs(x), scale), &exponent);
  const double step = std::ldexp(1.0, exponent - bits);
  return std::isfinite(x) && step > 0 ? std::round(x / step) * step : x;
}

// Parts of a product may leave the type's range where the whole does not, in one order or another: it is no number
// then.
void forget_products_that_leave_the_range(const Op &op, const ReferenceContext &c) {
  RefTensor &result = c.results[0];
  if (!result.is_float()) return;
  const bool wide = result.dtype == DType::f64;
  const double largest = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const double smallest = wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  // The products of the factors from 1 on, and of those up to 1.
  const auto product_of = [&](auto factor) {
    RefTensor operand = *c.inputs[0];
    for (double &x : operand.f) x = factor(std::abs(x));
    const RefTensor *const pointer = &operand;
    Tensors products(c.results.begin(), c.results.end());
    ReferenceContext again{c.op, {&pointer, 1}, products, c.attrs, c.run_graph, c.on_turn};
    (void)op.reference(again);
    return products[0].f;
  };
  const std::vector<double> large = product_of([](double x) { return std::max(x, 1.0); });
  const std::vector<double> small = product_of([](double x) { return x == 0 ? 1 : std::min(x, 1.0); });
  for (size_t k = 0; k < result.f.size(); ++k)
    if ((large[k] > largest && std::isfinite(result.f[k])) || (small[k] < smallest && result.f[k] != 0))
      result.f[k] = std::numeric_limits<double>::quiet_NaN();
}

// Puts errors on what the op computes, and rounds it to its type. Both runs of a pair draw the same numbers. A `zero`
// stands for all zeros among results, whose signs depend on the order of operands and sums, and to atan2 matter.
void disturb(const Graph &graph, const Node &node, const ReferenceContext &c, Dice &dice, double sign, bool coarsely,
             std::optional<double> zero) {
  const Op &op = op_of(node);
  const bool narrows = rounds_computed(graph, node, c);
  const DType type = narrows ? c.inputs[0]->dtype : c.results[0].dtype;
  const Precision precision = precision_of(type);
  const Rounding narrowing{error_part * tolerance_of(Sample(), type), true};
  const Rounding &rounding = narrows ? narrowing : cached_rounding_of(op);
  const double error = error_of(rounding, type) * (rounding.in_order ? growth_of(c.inputs) : 1);
  auto stray = [&](double x) {
    // Never much less than the whole error: one that all depends on is not to vanish by chance.
    const double part = 0.5 + 0.5 * dice.unit();
    const double by = (dice.chance(0.5) ? sign : -sign) * part * error;
    return std::isfinite(x) && x != 0 ? x + by * std::abs(x) : x;
  };
  if (rounding.operands) {
    std::vector<RefTensor> operands;
    std::vector<const RefTensor *> pointers;
    for (const RefTensor *operand : c.inputs) operands.push_back(*operand);
    for (RefTensor &operand : operands) {
      for (double &x : operand.f) x = stray(x);
      pointers.push_back(&operand);
    }
    ReferenceContext again{c.op, pointers, c.results, c.attrs, c.run_graph, c.on_turn};
    (void)op.reference(again);  // it has run on these shapes and integers before
  }
  const double summed = rounding.operands ? largest_of(c.inputs) : 0;  // what cancels comes to exactly 0
  for (double &x : c.results[0].f)
    if (error > 0 && !narrows)
      x = coarsely ? rounded_coarsely(x, summed, precision.coarse_bits, precision.smallest) : stray(x);
  for (RefTensor &result : c.results) {
    result.fit();
    if (result.dtype == DType::f32)
      for (double &x : result.f) x = static_cast<float>(x);
    for (double &x : result.f)
      if (zero && x == 0) x = *zero;
  }
  if (rounding.product) forget_products_that_leave_the_range(op, c);
}

// Outputs, then what copy_ writes.
Result<Tensors> run(const Graph &graph, const Tensors &arguments, const OnResults &on_results) {
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &argument : arguments) pointers.push_back(&argument);
  std::map<size_t, RefTensor> copied;
  KILN_ASSIGN(Tensors all, run_reference(graph, pointers, &copied, on_results));
  for (auto &[input, value] : copied) all.push_back(std::move(value));
  return all;
}

// What a run says of the tolerance of an element.
double distance(double run, double value) {
  if (std::isfinite(run) && std::isfinite(value)) return std::abs(run - value);
  return run == value || (std::isnan(run) && std::isnan(value)) ? 0 : infinite;
}

// Of those that are finite.
double average_of(std::span<const double> all) {
  double sum = 0;
  size_t count = 0;
  for (double x : all) {
    if (std::isinf(x)) continue;
    sum += x;
    ++count;
  }
  return count ? sum / static_cast<double>(count) : 0;
}

}  // namespace

bool rounds(const Op &op) {
  if (op.view || op.flags & op_flags::moves) return false;
  return !op.lower || cached_rounding_of(op).error > 0;
}

Result<Oracle> Oracle::of(GraphPtr graph) {
  const RewriteGraph decompose_nested = [](const GraphPtr &nested, const std::string &) {
    return flat_and_decomposed(nested);
  };
  KILN_ASSIGN(GraphPtr decomposed, rewrite_nested(graph, decompose_nested));
  KILN_ASSIGN(decomposed, flat_and_decomposed(std::move(decomposed)));
  return Oracle(std::move(graph), std::move(decomposed));
}

Result<Expected> Oracle::expect(const std::vector<TensorData> &arguments) const {
  Tensors tensors;
  for (const TensorData &argument : arguments) tensors.push_back(to_reference(argument));
  Expected expected;
  KILN_ASSIGN(expected.values, run(*graph_, tensors, {}));
  std::vector<std::vector<double>> &tolerance = expected.tolerance;
  for (const RefTensor &value : expected.values) tolerance.emplace_back(static_cast<size_t>(value.size()), 0.0);
  for (int number = -2; number < 2 * pairs; ++number) {
    const bool paired = number >= 0, coarsely = number == -1;
    Dice dice(static_cast<uint64_t>(paired ? number / 2 : pairs));
    const double sign = !paired ? 0 : number % 2 ? -1 : 1;
    const std::optional<double> zero = paired ? std::nullopt : std::optional(coarsely ? 0.0 : -0.0);
    KILN_ASSIGN(Tensors results,
                run(*decomposed_, tensors, [&](const Graph &graph, const Node &node, const ReferenceContext &c) {
                  disturb(graph, node, c, dice, sign, coarsely, zero);
                }));
    for (size_t r = 0; r < results.size(); ++r) {
      const RefTensor &value = expected.values[r], &other = results[r];
      if (other.shape != value.shape)
        return invalid("result ", r, " has another shape where its graph rounds otherwise");
      for (size_t k = 0; k < tolerance[r].size(); ++k) {
        const double far = value.is_float()           ? distance(other.f[k], value.f[k])
                           : other.i[k] == value.i[k] ? 0
                                                      : infinite;
        tolerance[r][k] = std::max(tolerance[r][k], far);
      }
    }
  }
  for (size_t r = 0; r < tolerance.size(); ++r) {
    // The few errors that were drawn may cancel in one element: it gets at least what the tensor has on average.
    const double average = average_of(tolerance[r]);
    // And integers that errors decide may have come out alike in all runs: where many did not, none is held to it.
    const auto open = static_cast<size_t>(std::ranges::count(tolerance[r], infinite));
    if (!expected.values[r].is_float() && open * 8 >= tolerance[r].size()) std::ranges::fill(tolerance[r], infinite);
    for (size_t k = 0; k < tolerance[r].size(); ++k) {
      double &t = tolerance[r][k];
      t = tolerance_factor * std::max(t, average);
      // Errors that move a value by a thousand times itself (1/x near 0, on either side) move it by any amount.
      if (expected.values[r].is_float() && t > 1e3 * (1 + std::abs(expected.values[r].f[k]))) t = infinite;
      ++expected.elements;
      expected.undetermined += std::isinf(t);
      if (!expected.values[r].is_float()) continue;
      const Precision precision = precision_of(expected.values[r].dtype);
      if (const double value = expected.values[r].f[k]; std::isfinite(value)) {
        if (t > 0) t = std::max(t, precision.step * std::abs(value));  // those that were drawn may not have met a tie
        t += precision.last_rounding * std::abs(value) + precision.smallest;
      }
    }
  }
  return expected;
}

std::string difference(const std::vector<TensorData> &got, const Expected &expected) {
  if (got.size() != expected.values.size()) return str_cat(got.size(), " results, expected ", expected.values.size());
  for (size_t r = 0; r < got.size(); ++r) {
    const RefTensor &value = expected.values[r];
    if (got[r].dtype != value.dtype || got[r].shape != value.shape) return difference(got[r], from_reference(value), 0);
    const RefTensor now = to_reference(got[r]);
    size_t count = 0, first = 0;
    for (size_t k = 0; k < expected.tolerance[r].size(); ++k) {
      const double tolerance = expected.tolerance[r][k];
      bool fits = true;
      if (value.is_float()) {
        const double rounded = value.dtype == DType::f32 ? static_cast<float>(value.f[k]) : value.f[k];
        fits = distance(now.f[k], rounded) <= tolerance || distance(now.f[k], value.f[k]) <= tolerance;
      } else {
        fits = now.i[k] == value.i[k] || std::isinf(tolerance);
      }
      if (!fits && count++ == 0) first = k;
    }
    if (count == 0) continue;
    auto element = [&](const RefTensor &t) { return t.is_float() ? str_cat(t.f[first]) : str_cat(t.i[first]); };
    return str_cat("result ", r, " of shape ", shape_text(value.shape), ", element ", first, ": ", element(now),
                   ", expected ", element(value), " (tolerance ", expected.tolerance[r][first], "); ", count, " of ",
                   value.size(), " elements differ");
  }
  return "";
}

}  // namespace kiln::testing
