// Reductions. Where the innermost reduce axis is vectorised, each lane has partial carriers of its own; at the end the
// combine body runs on halves, quarters, ... of the vectors down to one lane. Points beyond the last whole vector are
// combined under a mask, or into carriers of their own that come last. So the order depends on the schedule alone.
#include <algorithm>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Axis;
using kernel::Schedule;

constexpr unsigned interleaved = 4;

class Reduction {
 public:
  Reduction(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point)
      : state_(state), b_(state.b), stage_(stage) {
    choose_plan(point);
    Values carried;
    const unsigned width = plan_.width > 1 ? plan_.width : point.width;
    for (unsigned i = 0; i < sets_; ++i) carried.append(emit_identities(state_, stage_.carriers, width));
    if (own_rest_) carried.append(emit_identities(state_, stage_.carriers, 1));
    carried = emit_axes(first, point, carried);
    result_ = across_lanes(across_sets(carried));
    if (own_rest_) result_ = combine(result_, set(carried, sets_), 1);
  }

  const Values &result() const { return result_; }

 private:
  void choose_plan(const Point &point) {
    const Schedule &schedule = state_.kernel.schedule;
    plan_.axis = state_.kernel.parallel.size() + stage_.axes.size() - 1;
    if (schedule.vector != Schedule::Vector::inner || point.is_vector()) return;
    const Expr &extent = stage_.axes.back().extent;
    const int64_t count = extent.is_integer() ? extent.integer() : INT64_MAX;
    const int64_t lanes = schedule.lanes;
    if (!schedule.masked_tail && count < lanes) return;
    plan_ = make_plan(state_, {&stage_, 1}, plan_.axis, schedule.lanes, lanes);
    own_rest_ = lanes > 1 && !plan_.masked && !(extent.is_integer() && count % lanes == 0);
    // A short body waits for its carriers' latency: several chains hide it.
    const bool is_short = stage_.body.values.size() + stage_.carriers.combine.values.size() <= 12;
    if (lanes > 1 && is_short && count >= 2 * interleaved * lanes) sets_ = interleaved;
  }

  // Carried values are sets of carriers: sets_ of vectors, then, if own_rest_, one of scalars.
  Values set(const Values &carried, size_t number) const {
    const auto size = static_cast<long>(stage_.carriers.types.size()), at = static_cast<long>(number) * size;
    return Values(carried.begin() + at, carried.begin() + at + size);
  }
  static void replace_set(Values &carried, size_t number, const Values &with) {
    std::copy(with.begin(), with.end(), carried.begin() + static_cast<long>(number * with.size()));
  }

  Values combine(const Values &left, const Values &right, unsigned width) {
    return emit_combination(state_, stage_.carriers, left, right, width);
  }

  // One set of carriers takes up the elements of a point.
  Values step(const Point &point, const Values &carried, size_t number) {
    Values next = carried;
    replace_set(next, number, combine(set(carried, number), emit_body(state_, stage_.body, point), point.width));
    return next;
  }

  Values emit_axes(size_t n, const Point &point, const Values &carried) {
    if (n == stage_.axes.size()) return step(point, carried, 0);
    const size_t id = state_.kernel.parallel.size() + n;
    const Range range = stage_range(state_, stage_.axes[n], point);
    if (id == plan_.axis && plan_.width > 1) return emit_over_lanes_of(range, point, carried);
    return emit_loop(state_, range, 1, carried, [&](llvm::Value *i, const Values &now) {
      Point inside = point;
      inside.set_axis(id, i);
      return emit_axes(n + 1, inside, now);
    });
  }

  Values emit_over_lanes_of(const Range &range, const Point &point, Values carried) {
    if (plan_.single && range.has_rest(plan_.width)) return emit_masked(range, point, carried);
    Range left = range;
    if (sets_ > 1) {
      const auto [blocks, rest] = split_range(state_, left, plan_.width * sets_);
      carried = emit_loop(state_, blocks, plan_.width * sets_, carried, [&](llvm::Value *i, Values now) {
        for (unsigned k = 0; k < sets_; ++k)
          now = step(at_lanes(plan_, point, b_.CreateNSWAdd(i, b_.getInt64(k * plan_.width))), now, k);
        return now;
      });
      left = rest;
    }
    const auto [vectors, rest] = split_range(state_, left, plan_.width);
    carried = emit_loop(state_, vectors, plan_.width, carried,
                        [&](llvm::Value *i, const Values &now) { return step(at_lanes(plan_, point, i), now, 0); });
    return own_rest_ ? emit_own_rest(rest, point, carried) : emit_masked(rest, point, carried);
  }

  Values emit_own_rest(const Range &rest, const Point &point, const Values &carried) {
    return emit_loop(state_, rest, 1, carried,
                     [&](llvm::Value *i, const Values &now) { return step(at_scalar(plan_, point, i), now, sets_); });
  }

  Values emit_masked(const Range &range, const Point &point, const Values &carried) {
    return emit_loop(state_, range, plan_.width, carried, [&](llvm::Value *i, const Values &now) {
      const Point inside = at_masked(state_, plan_, point, i, range.end);
      const Values before = set(now, 0);
      Values next = step(inside, now, 0), after = set(next, 0);
      for (size_t k = 0; k < after.size(); ++k) after[k] = b_.CreateSelect(inside.active, after[k], before[k]);
      replace_set(next, 0, after);
      return next;
    });
  }

  Values across_sets(const Values &carried) {
    Values sum = set(carried, 0);
    for (unsigned k = 1; k < sets_; ++k) sum = combine(sum, set(carried, k), plan_.width);
    return sum;
  }

  Values across_lanes(Values lanes) {
    for (unsigned width = plan_.width / 2; width >= 1; width /= 2) {
      Values low, high;
      for (llvm::Value *vector : lanes) {
        low.push_back(part(vector, 0, width));
        high.push_back(part(vector, width, width));
      }
      lanes = combine(low, high, width);
    }
    return lanes;
  }

  llvm::Value *part(llvm::Value *vector, unsigned from, unsigned width) {
    if (width == 1) return b_.CreateExtractElement(vector, uint64_t{from});
    llvm::SmallVector<int, 32> lanes;
    for (unsigned lane = 0; lane < width; ++lane) lanes.push_back(static_cast<int>(from + lane));
    return b_.CreateShuffleVector(vector, lanes);
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const kernel::Stage &stage_;
  LanePlan plan_{0, 1, false, false, 1};
  unsigned sets_ = 1;      // of vector carriers
  bool own_rest_ = false;  // the points beyond whole vectors have scalar carriers
  Values result_;
};

}  // namespace

Values emit_identities(KernelState &state, const kernel::Carriers &carriers, unsigned width) {
  Values values;
  for (size_t i = 0; i < carriers.types.size(); ++i)
    values.push_back(splat(state, constant_of(state, carriers.types[i], carriers.identities[i]), width));
  return values;
}

Values emit_combination(KernelState &state, const kernel::Carriers &carriers, const Values &left, const Values &right,
                        unsigned width) {
  Point lanes;
  lanes.width = width;
  Values both = left;
  both.append(right);
  Values result = emit_body(state, carriers.combine, lanes, {.carriers = both});
  for (llvm::Value *&value : result) value = splat(state, value, width);
  return result;
}

void emit_reduction(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point) {
  const Reduction reduction(state, stage, first, point);
  emit_stores(state, stage.stores, reduction.result(), point);
}

}  // namespace kiln::codegen
