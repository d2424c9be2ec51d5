// Runs kernel IR by the letter of kernel.h, one element at a time, in double and int64_t: what fusion is tested
// against, and what emitters can be. Tiles, vectors and packing blocks are ignored: they may not change the result's
// meaning.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "jit/base/small_float.h"
#include "jit/base/special_functions.h"
#include "jit/kernel/fuse.h"
#include "jit/kernel/kernel.h"

namespace kiln::kernel::testing {

union Scalar {
  double f;
  int64_t i;
};
using Array = std::vector<Scalar>;
using Sizes = std::map<std::string, int64_t>;

inline bool is_float(DType t) { return dtype_info(t).is_float; }
inline Scalar immediate(uint64_t bits) { return std::bit_cast<Scalar>(bits); }

class Interpreter {
 public:
  // `buffers`: one for each in and out buffer.
  Interpreter(const Kernel &kernel, std::vector<Array *> buffers, Sizes sizes)
      : kernel_(kernel), memory_(std::move(buffers)), sizes_(std::move(sizes)) {}

  void run() {
    std::vector<int64_t> point;
    walk(kernel_.parallel, 0, point, [&] {
      std::vector<Array> local;
      for (const Buffer &b : kernel_.buffers) {
        if (b.space == Buffer::Space::row_local) local.emplace_back(static_cast<size_t>(eval(b.size, point, nullptr)));
      }
      std::vector<Array *> buffers = memory_;
      for (Array &a : local) buffers.push_back(&a);
      const std::vector<Stage> &stages = kernel_.stages;
      for (size_t first = 0, end = 0; first < stages.size(); first = end) {
        end = end_of_blocks(kernel_, first);
        const auto run_all = [&] {
          for (size_t s = first; s < end; ++s) run_stage(stages[s], point, buffers);
        };
        if (stages[first].in_blocks())
          walk({stages[first].axes[0]}, 0, point, run_all);
        else
          run_all();
      }
    });
  }

 private:
  using Values = std::vector<Scalar>;

  void walk(const std::vector<Axis> &axes, size_t first, std::vector<int64_t> &point,
            const std::function<void()> &fn) const {
    if (first == axes.size()) return fn();
    const int64_t extent = eval(axes[first].extent, point, nullptr);
    for (int64_t i = 0; i < extent; ++i) {
      point.push_back(i);
      walk(axes, first + 1, point, fn);
      point.pop_back();
    }
  }

  int64_t eval(const Expr &e, const std::vector<int64_t> &point, const Values *values) const {
    const auto leaf = [&](const Expr &at) {
      if (at.kind() == Expr::Kind::axis) return point.at(at.id());
      if (at.kind() == Expr::Kind::value) return values->at(at.id()).i;
      return sizes_.at(at.symbol_name());
    };
    return e.evaluate_leaves(std::cref(leaf));
  }

  static bool compares(Core op) { return core_info(op).group == CoreGroup::compare; }

  template <class T>
  static bool compare(Core op, T a, T b) {
    switch (op) {
      case Core::eq:
        return a == b;
      case Core::ne:
        return a != b;
      case Core::lt:
        return a < b;
      case Core::le:
        return a <= b;
      case Core::gt:
        return a > b;
      default:
        return a >= b;
    }
  }
  static bool compare(Core op, Scalar a, Scalar b, DType type) {
    if (is_float(type)) return compare(op, a.f, b.f);
    return is_signed(type) ? compare(op, a.i, b.i)
                           : compare(op, static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i));
  }
  static bool is_signed(DType type) { return dtype_info(type).is_signed; }

  // An immediate as a value of the type: small floats are rounded.
  static Scalar immediate_as(DType type, uint64_t bits) {
    const Scalar x = immediate(bits);
    return !is_small_float(type) ? x
                                 : Scalar{.f = decode_float(encode_float(x.f, small_format(type)), small_format(type))};
  }

  static Scalar convert(Scalar x, DType from, DType to) {
    if (!is_float(to)) return {.i = is_float(from) ? static_cast<int64_t>(immediate_of(to, x.f)) : wrapped(x.i, to)};
    if (!is_float(from)) {
      const long double exact =
          is_signed(from) ? static_cast<long double>(x.i) : static_cast<long double>(static_cast<uint64_t>(x.i));
      x.f = to == DType::f64 ? static_cast<double>(exact) : rounded_to_odd(exact);
    }
    if (!is_small_float(to)) return x;
    return immediate_as(to, std::bit_cast<uint64_t>(saturated(x.f, small_format(to))));
  }

  static double on_floats(Core op, double a, double b) {
    switch (op) {
      case Core::add:
        return a + b;
      case Core::sub:
        return a - b;
      case Core::mul:
        return a * b;
      case Core::div:
        return a / b;
      case Core::rem:
        return std::fmod(a, b) != 0 && (std::fmod(a, b) < 0) != (b < 0) ? std::fmod(a, b) + b : std::fmod(a, b);
      case Core::neg:
        return -a;
      case Core::abs:
        return std::abs(a);
      case Core::min:
        return std::isnan(a) || a < b || (a == b && std::signbit(a)) ? a : b;
      case Core::max:
        return std::isnan(a) || a > b || (a == b && !std::signbit(a)) ? a : b;
      case Core::sqrt:
        return std::sqrt(a);
      case Core::rsqrt:
        return 1 / std::sqrt(a);
      case Core::exp:
        return std::exp(a);
      case Core::log:
        return std::log(a);
      case Core::exp2:
        return std::exp2(a);
      case Core::expm1:
        return std::expm1(a);
      case Core::log1p:
        return std::log1p(a);
      case Core::log2:
        return std::log2(a);
      case Core::log10:
        return std::log10(a);
      case Core::tan:
        return std::tan(a);
      case Core::asin:
        return std::asin(a);
      case Core::acos:
        return std::acos(a);
      case Core::atan:
        return std::atan(a);
      case Core::sinh:
        return std::sinh(a);
      case Core::cosh:
        return std::cosh(a);
      case Core::asinh:
        return std::asinh(a);
      case Core::acosh:
        return std::acosh(a);
      case Core::atanh:
        return std::atanh(a);
      case Core::erfc:
        return std::erfc(a);
      case Core::erfinv:
        return inverse_erf(a);
      case Core::lgamma:
        return log_of_gamma(a);
      case Core::digamma:
        return digamma(a);
      case Core::atan2:
        return std::atan2(a, b);
      case Core::tanh:
        return std::tanh(a);
      case Core::erf:
        return std::erf(a);
      case Core::sin:
        return std::sin(a);
      case Core::cos:
        return std::cos(a);
      case Core::pow:
        return std::pow(a, b);
      case Core::floor:
        return std::floor(a);
      case Core::ceil:
        return std::ceil(a);
      case Core::trunc:
        return std::trunc(a);
      case Core::round:
        return std::nearbyint(a);
      default:
        throw std::logic_error(std::string(core_info(op).name) + " is not on floats");
    }
  }

  // The low bits that a value of this type has.
  static int64_t wrapped(int64_t x, DType type) {
    const unsigned bits = size_of(type) * 8;
    if (type == DType::boolean) return x != 0;
    if (bits == 64) return x;
    const auto high = static_cast<int64_t>(static_cast<uint64_t>(x) << (64 - bits));
    return dtype_info(type).is_signed ? high >> (64 - bits)
                                      : static_cast<int64_t>(static_cast<uint64_t>(high) >> (64 - bits));
  }

  // Division by zero gives 0; the error word is not modelled. T is int64_t or uint64_t.
  template <class T>
  static T on_integers(Core op, T a, T b, DType type) {
    const T width = size_of(type) * 8;
    const auto wrap = [](uint64_t u) { return static_cast<T>(u); };
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    const bool by_minus_one = std::is_signed_v<T> && b == static_cast<T>(-1);
    switch (op) {
      case Core::add:
        return wrap(x + y);
      case Core::sub:
        return wrap(x - y);
      case Core::mul:
        return wrap(x * y);
      case Core::div:
        return b == 0 ? 0 : by_minus_one ? wrap(-x) : a / b;
      case Core::rem:
        return b == 0 || by_minus_one ? 0 : (a % b != 0 && (a % b < 0) != (b < 0)) ? a % b + b : a % b;
      case Core::neg:
        return wrap(-x);
      case Core::abs:
        return a < 0 ? wrap(-x) : a;
      case Core::min:
        return std::min(a, b);
      case Core::max:
        return std::max(a, b);
      case Core::pow:
        return power(a, b);
      case Core::floor:
      case Core::ceil:
      case Core::trunc:
      case Core::round:
        return a;
      case Core::bit_and:
        return a & b;
      case Core::bit_or:
        return a | b;
      case Core::bit_xor:
        return a ^ b;
      case Core::bit_not:
        return ~a;
      case Core::shift_left:
        return b < 0 || b >= width ? 0 : wrap(x << b);
      case Core::shift_right:
        return b < 0 || b >= width ? (a < 0 ? static_cast<T>(-1) : 0) : a >> b;
      case Core::logical_and:
        return a && b;
      case Core::logical_or:
        return a || b;
      case Core::logical_not:
        return !a;
      case Core::in_range:
        return 0 <= a && a < b;
      default:
        throw std::logic_error(std::string(core_info(op).name) + " is not on integers");
    }
  }

  template <class T>
  static T power(T base, T exponent) {
    const T minus_one = static_cast<T>(-1);
    if (exponent < 0) return base == 1 ? 1 : base == minus_one ? (exponent % 2 ? minus_one : 1) : 0;
    uint64_t result = 1, factor = static_cast<uint64_t>(base);
    for (; exponent; exponent >>= 1, factor *= factor)
      if (exponent & 1) result *= factor;
    return static_cast<T>(result);
  }

  static Scalar compute(Core op, Scalar a, Scalar b, DType operand, DType result) {
    if (compares(op)) return {.i = compare(op, a, b, operand)};
    if (is_float(operand)) return {.f = on_floats(op, a.f, b.f)};
    if (is_signed(operand)) return {.i = wrapped(on_integers(op, a.i, b.i, operand), result)};
    const uint64_t unsigned_result = on_integers(op, static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i), operand);
    return {.i = wrapped(static_cast<int64_t>(unsigned_result), result)};
  }

  Values run_body(const Body &body, const std::vector<int64_t> &point, const std::vector<Array *> &buffers,
                  Scalar accumulator, const Values &carriers) const {
    Values v;
    v.reserve(body.values.size());
    for (const Value &value : body.values) {
      const auto arg = [&](size_t i) { return v.at(static_cast<size_t>(value.args[i])); };
      const DType operand = value.args[0] >= 0 ? body.values[static_cast<size_t>(value.args[0])].type : value.type;
      Scalar r{};
      switch (value.op) {
        case Core::constant:
          r = immediate_as(value.type, value.immediate);
          break;
        case Core::load:
          if (value.access.valid >= 0 && !v.at(static_cast<size_t>(value.access.valid)).i)
            r = immediate_as(value.type, value.access.fill);
          else
            r = buffers.at(value.access.buffer)->at(static_cast<size_t>(eval(value.access.index[0], point, &v)));
          break;
        case Core::search:
          if (value.access.valid >= 0 && !v.at(static_cast<size_t>(value.access.valid)).i)
            r = immediate(value.access.fill);
          else
            r.i = search(value, arg(0), operand, point, buffers, v);
          break;
        case Core::index:
          r.i = eval(value.expr, point, &v);
          break;
        case Core::carrier:
          r = carriers.at(value.immediate);
          break;
        case Core::accumulator:
          r = accumulator;
          break;
        case Core::convert:
          r = convert(arg(0), operand, value.type);
          break;
        case Core::select:
          r = arg(0).i ? arg(1) : arg(2);
          break;
        default: {
          const Scalar a = arg(0), b = core_info(value.op).operands > 1 ? arg(1) : Scalar{};
          r = compute(value.op, a, b, operand, value.type);
        }
      }
      v.push_back(r);
    }
    Values yields;
    yields.reserve(body.yields.size());
    for (int32_t y : body.yields) yields.push_back(v.at(static_cast<size_t>(y)));
    return yields;
  }

  // The order of sorts.
  static bool before(Scalar a, Scalar b, DType type, bool descending) {
    if (descending) std::swap(a, b);
    if (is_float(type) && (std::isnan(a.f) || std::isnan(b.f))) return !std::isnan(a.f);
    return compare(Core::lt, a, b, type);
  }

  int64_t search(const Value &value, Scalar key, DType type, const std::vector<int64_t> &point,
                 const std::vector<Array *> &buffers, const Values &v) const {
    const int64_t start = eval(value.access.index[0], point, &v), step = eval(value.access.index[1], point, &v),
                  count = eval(value.expr, point, &v);
    const bool descending = value.immediate & search_descending, upper = value.immediate & search_upper;
    int64_t found = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Scalar element = buffers.at(value.access.buffer)->at(static_cast<size_t>(start + i * step));
      found += upper ? !before(key, element, type, descending) : before(element, key, type, descending);
    }
    return found;
  }

  // `results`: yields or carriers, by number.
  void store(const Stage &stage, const std::vector<int64_t> &point, const std::vector<Array *> &buffers,
             const Values &results) const {
    for (const Store &s : stage.stores) {
      if (s.to.valid >= 0 && !results.at(static_cast<size_t>(s.to.valid)).i) continue;
      Scalar &element = buffers.at(s.to.buffer)->at(static_cast<size_t>(eval(s.to.index[0], point, &results)));
      const Scalar value = results.at(static_cast<size_t>(s.value));
      const DType type = kernel_.buffers[s.to.buffer].type;
      element = s.combines() ? compute(core_of(s.mode, type), element, value, type, type) : value;
    }
  }

  void sort(const Stage &stage, const std::vector<int64_t> &point, const std::vector<Array *> &buffers) const {
    const Sort &s = *stage.sort;
    const auto count = static_cast<size_t>(eval(stage.axes.back().extent, point, nullptr));
    const Array keys = *buffers.at(s.columns[0].buffer);
    const DType type = kernel_.buffers[s.columns[0].buffer].type;
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return before(keys[a], keys[b], type, s.descending); });
    for (const Sort::Column &column : s.columns) {
      const Array old = *buffers.at(column.buffer);
      for (size_t i = 0; i < count; ++i) buffers.at(column.buffer)->at(i) = old.at(order[i]);
    }
  }

  void contract(const Stage &stage, const std::vector<Axis> &k, std::vector<int64_t> &point,
                const std::vector<Array *> &buffers) const {
    const DType type = stage.contract->accumulator;
    Scalar sum = immediate_as(type, immediate_of(type, 0));
    walk(k, 0, point, [&] {
      const Scalar a = run_body(stage.contract->a, point, buffers, {}, {})[0];
      const Scalar b = run_body(stage.contract->b, point, buffers, {}, {})[0];
      sum = compute(Core::add, sum, compute(Core::mul, a, b, type, type), type, type);
    });
    store(stage, point, buffers, run_body(stage.body, point, buffers, sum, {}));
  }

  void scan(const Stage &stage, std::vector<int64_t> &point, const std::vector<Array *> &buffers) const {
    const Carriers &c = stage.carriers;
    const size_t n = c.types.size();
    Values state;
    for (uint64_t identity : c.identities) state.push_back(immediate(identity));
    const int64_t count = eval(stage.axes.back().extent, point, nullptr);
    for (int64_t i = 0; i < count; ++i) {
      point.push_back(c.reverse ? count - 1 - i : i);
      const Values yields = run_body(stage.body, point, buffers, {}, {});
      Values both = state, results = state;
      both.insert(both.end(), yields.begin(), yields.begin() + static_cast<long>(n));
      state = run_body(c.combine, point, buffers, {}, both);
      if (!c.exclusive) results = state;
      results.insert(results.end(), yields.begin() + static_cast<long>(n), yields.end());
      store(stage, point, buffers, results);
      point.pop_back();
    }
  }

  void run_stage(const Stage &stage, std::vector<int64_t> &point, const std::vector<Array *> &buffers) const {
    if (stage.sort) return sort(stage, point, buffers);
    std::vector<Axis> loops, reduces;
    for (const Axis &axis : stage.axes)
      if (axis.role != Axis::Role::block) (axis.role == Axis::Role::loop ? loops : reduces).push_back(axis);
    walk(loops, 0, point, [&] {
      if (stage.contract) return contract(stage, reduces, point, buffers);
      if (stage.scans()) return scan(stage, point, buffers);
      if (reduces.empty()) return store(stage, point, buffers, run_body(stage.body, point, buffers, {}, {}));
      Values state;
      for (uint64_t identity : stage.carriers.identities) state.push_back(immediate(identity));
      const auto &until = stage.carriers.until;
      const int64_t count = until ? eval(*until, point, nullptr) : INT64_MAX;
      walk(reduces, 0, point, [&] {
        if (point.back() >= count) return;
        Values both = state;
        for (const Scalar &s : run_body(stage.body, point, buffers, {}, {})) both.push_back(s);
        state = run_body(stage.carriers.combine, point, buffers, {}, both);
      });
      store(stage, point, buffers, state);
    });
  }

  const Kernel &kernel_;
  std::vector<Array *> memory_;
  Sizes sizes_;
};

// Runs all launches over `tensors` (inputs filled in; others sized here).
inline void run(const Fused &fused, std::vector<Array> &tensors, const Sizes &sizes) {
  const auto value = [&](const Expr &e) { return e.evaluate([&](const std::string &s) { return sizes.at(s); }); };
  tensors.resize(fused.tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t)
    tensors[t].resize(static_cast<size_t>(
        value(max(product_of(fused.tensors[t].dims), span_elements(fused.tensors[t].dims, fused.tensors[t].strides)))));
  for (const Launch &launch : fused.launches) {
    std::vector<Array *> buffers;
    for (const Launch::Base &base : launch.bases) tensors[launch.buffers[base.buffer]] = tensors[base.tensor];
    for (uint32_t t : launch.buffers) buffers.push_back(&tensors[t]);
    Sizes own;
    for (size_t i = 0; i < launch.symbols.size(); ++i) own[launch.kernel->symbols[i]] = sizes.at(launch.symbols[i]);
    Interpreter(*launch.kernel, std::move(buffers), std::move(own)).run();
  }
}

}  // namespace kiln::kernel::testing
