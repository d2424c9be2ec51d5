// Runs kernel IR by the letter of kernel.h, one element at a time, in double and int64_t: what fusion is tested
// against, and what emitters can be. Tiles, vectors and packing blocks are ignored: they may not change the result's
// meaning.
#pragma once
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

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
      for (const Stage &stage : kernel_.stages) run_stage(stage, point, buffers);
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
    return e
        .substitute([&](const Expr &leaf) -> std::optional<Expr> {
          if (leaf.kind() == Expr::Kind::axis) return Expr(point.at(leaf.id()));
          if (leaf.kind() == Expr::Kind::value) return Expr(values->at(leaf.id()).i);
          return Expr(sizes_.at(leaf.symbol_name()));
        })
        .evaluate([](const std::string &) { return int64_t{0}; });
  }

  Values run_body(const Body &body, const std::vector<int64_t> &point, const std::vector<Array *> &buffers,
                  Scalar accumulator, const Values &carriers) const {
    Values v;
    for (const Value &value : body.values) {
      const auto arg = [&](size_t i) { return v.at(static_cast<size_t>(value.args[i])); };
      const bool fp = is_float(value.args[0] >= 0 ? body.values[static_cast<size_t>(value.args[0])].type : value.type);
      Scalar r{};
      switch (value.op) {
        case Core::constant:
          r = immediate(value.immediate);
          break;
        case Core::load:
          if (value.access.valid >= 0 && !v.at(static_cast<size_t>(value.access.valid)).i)
            r = immediate(value.access.fill);
          else
            r = buffers.at(value.access.buffer)->at(static_cast<size_t>(eval(value.access.index[0], point, &v)));
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
          if (is_float(value.type))
            r.f = fp ? arg(0).f : static_cast<double>(arg(0).i);
          else if (value.type == DType::boolean)
            r.i = fp ? arg(0).f != 0 : arg(0).i != 0;
          else
            r.i = fp ? static_cast<int64_t>(arg(0).f) : arg(0).i;
          break;
        case Core::add:
          fp ? (void)(r.f = arg(0).f + arg(1).f) : (void)(r.i = arg(0).i + arg(1).i);
          break;
        case Core::sub:
          fp ? (void)(r.f = arg(0).f - arg(1).f) : (void)(r.i = arg(0).i - arg(1).i);
          break;
        case Core::mul:
          fp ? (void)(r.f = arg(0).f * arg(1).f) : (void)(r.i = arg(0).i * arg(1).i);
          break;
        case Core::div:
          fp ? (void)(r.f = arg(0).f / arg(1).f) : (void)(r.i = arg(1).i ? arg(0).i / arg(1).i : 0);
          break;
        case Core::neg:
          fp ? (void)(r.f = -arg(0).f) : (void)(r.i = -arg(0).i);
          break;
        case Core::min:
          fp ? (void)(r.f = std::min(arg(0).f, arg(1).f)) : (void)(r.i = std::min(arg(0).i, arg(1).i));
          break;
        case Core::max:
          fp ? (void)(r.f = std::max(arg(0).f, arg(1).f)) : (void)(r.i = std::max(arg(0).i, arg(1).i));
          break;
        case Core::sqrt:
          r.f = std::sqrt(arg(0).f);
          break;
        case Core::rsqrt:
          r.f = 1 / std::sqrt(arg(0).f);
          break;
        case Core::exp:
          r.f = std::exp(arg(0).f);
          break;
        case Core::tanh:
          r.f = std::tanh(arg(0).f);
          break;
        case Core::lt:
          r.i = fp ? arg(0).f < arg(1).f : arg(0).i < arg(1).i;
          break;
        case Core::le:
          r.i = fp ? arg(0).f <= arg(1).f : arg(0).i <= arg(1).i;
          break;
        case Core::ge:
          r.i = fp ? arg(0).f >= arg(1).f : arg(0).i >= arg(1).i;
          break;
        case Core::gt:
          r.i = fp ? arg(0).f > arg(1).f : arg(0).i > arg(1).i;
          break;
        case Core::logical_and:
          r.i = arg(0).i && arg(1).i;
          break;
        case Core::logical_or:
          r.i = arg(0).i || arg(1).i;
          break;
        case Core::select:
          r = arg(0).i ? arg(1) : arg(2);
          break;
        default:
          throw std::logic_error(std::string("the interpreter lacks ") + std::string(core_info(value.op).name));
      }
      v.push_back(r);
    }
    Values yields;
    for (int32_t y : body.yields) yields.push_back(v.at(static_cast<size_t>(y)));
    return yields;
  }

  void store(const Stage &stage, const std::vector<int64_t> &point, const std::vector<Array *> &buffers,
             const Values &values) const {
    for (const Store &s : stage.stores) {
      buffers.at(s.to.buffer)->at(static_cast<size_t>(eval(s.to.index[0], point, nullptr))) =
          values.at(static_cast<size_t>(s.value));
    }
  }

  void run_stage(const Stage &stage, std::vector<int64_t> &point, const std::vector<Array *> &buffers) const {
    if (stage.contract) {
      double sum = 0;
      walk(stage.axes, 0, point, [&] {
        sum += run_body(stage.contract->a, point, buffers, {}, {})[0].f *
               run_body(stage.contract->b, point, buffers, {}, {})[0].f;
      });
      store(stage, point, buffers, run_body(stage.body, point, buffers, {.f = sum}, {}));
      return;
    }
    std::vector<Axis> loops, reduces;
    for (const Axis &axis : stage.axes) (axis.role == Axis::Role::loop ? loops : reduces).push_back(axis);
    walk(loops, 0, point, [&] {
      if (reduces.empty()) return store(stage, point, buffers, run_body(stage.body, point, buffers, {}, {}));
      Values state;
      for (uint64_t identity : stage.carriers.identities) state.push_back(immediate(identity));
      walk(reduces, 0, point, [&] {
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
    tensors[t].resize(static_cast<size_t>(value(product_of(fused.tensors[t].dims))));
  for (const Launch &launch : fused.launches) {
    std::vector<Array *> buffers;
    for (uint32_t t : launch.buffers) buffers.push_back(&tensors[t]);
    Sizes own;
    for (size_t i = 0; i < launch.symbols.size(); ++i) own[launch.kernel.symbols[i]] = sizes.at(launch.symbols[i]);
    Interpreter(launch.kernel, std::move(buffers), std::move(own)).run();
  }
}

}  // namespace kiln::kernel::testing
