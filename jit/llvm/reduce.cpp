// Reductions along vectors: each lane has partial carriers of its own, in the order that kernel.h tells. At the end the
// combine body runs on halves, quarters, ... of the vectors down to one lane. Points beyond the last whole vector are
// combined under a mask or, where there is none, one by one into the lane that would be theirs.
#include <algorithm>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Axis;
using kernel::Schedule;

constexpr unsigned most_sets = kernel::sum_sets;

class Reduction {
 public:
  Reduction(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point)
      : state_(state), b_(state.b), stage_(stage) {
    choose_plan(point);
    Range all = stage_range(state_, stage_.axes[first], point);
    if (stage_.carriers.until) all = {b_.getInt64(0), emit_scalar(state_, *stage_.carriers.until, point)};
    const bool across = plan_.width > 1;
    result_ = emit_chunks(state_, stage_, all, across ? 1 : point.width, [&](const Range &part) {
      Values carried;
      const unsigned width = across ? plan_.width : point.width;
      if (stage_.carriers.in_pairs) return sum_of_chunk(part.begin, point);
      for (unsigned i = 0; i < sets_; ++i) carried.append(emit_identities(state_, stage_.carriers, width));
      carried = emit_axis(first, part, point, carried);
      return across_lanes(across_sets(carried));
    });
  }

  const Values &result() const { return result_; }

 private:
  void choose_plan(const Point &point) {
    const Schedule &schedule = state_.kernel.schedule;
    plan_.axis = state_.kernel.parallel.size() + stage_.axes.size() - 1;
    if (stage_.carriers.in_pairs) return;
    if (schedule.vector != Schedule::Vector::inner || point.is_vector() || schedule.lanes() == 1) return;
    const Expr &extent = stage_.axes.back().extent;
    count_ = extent.is_integer() ? extent.integer() : INT64_MAX;
    const int64_t lanes = schedule.lanes();
    const bool ordered = kernel::is_ordered(state_.kernel, stage_);
    if (!ordered && !schedule.masked_tail && count_ < lanes) return;
    plan_ = make_plan(state_, {&stage_, 1}, plan_.axis, schedule.lanes(), lanes);
    // A short body waits for its carriers' latency: several chains hide it. A long one is there once, whatever the
    // order: then the sets take turns.
    turns_ = stage_.body.values.size() + stage_.carriers.combine.values.size() > 12;
    if (ordered ? count_ >= most_sets * lanes : !turns_ && count_ >= 2 * most_sets * lanes) sets_ = most_sets;
  }

  // Which lies there.
  Values sum_of_chunk(llvm::Value *number, const Point &point) {
    Point at = point;
    at.set_axis(plan_.axis, number);
    Values sum = emit_body(state_, stage_.body, at);
    for (llvm::Value *&value : sum) value = splat(state_, value, point.width);
    return sum;
  }

  // Carried values are sets_ sets of carriers.
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
    return emit_axis(n, stage_range(state_, stage_.axes[n], point), point, carried);
  }

  Values emit_axis(size_t n, const Range &range, const Point &point, const Values &carried) {
    const size_t id = state_.kernel.parallel.size() + n;
    if (id == plan_.axis && plan_.width > 1) return emit_over_lanes_of(range, point, carried);
    return emit_loop(state_, range, 1, carried, [&](llvm::Value *i, const Values &now) {
      Point inside = point;
      inside.set_axis(id, i);
      return emit_axes(n + 1, inside, now);
    });
  }

  // Whole blocks of all sets, then whole vectors and what is left of one, into set 0.
  Values emit_over_lanes_of(const Range &range, const Point &point, Values carried) {
    Range left = range;
    llvm::Value *turning = nullptr;  // up to where the sets take turns; null: nowhere
    if (sets_ > 1) {
      const auto [blocks, rest] = split_range(state_, range, plan_.width * sets_);
      if (turns_) {
        turning = blocks.end;
        only_blocks_ = !range.has_rest(plan_.width * sets_);
      } else {
        carried = emit_loop(state_, blocks, plan_.width * sets_, carried, [&](llvm::Value *i, Values now) {
          for (unsigned k = 0; k < sets_; ++k)
            now = step(at_lanes(plan_, point, b_.CreateNSWAdd(i, b_.getInt64(k * plan_.width))), now, k);
          return now;
        });
        left = rest;
      }
    }
    if (plan_.single && left.has_rest(plan_.width)) return emit_masked(left, point, carried, turning);
    const auto [vectors, rest] = split_range(state_, left, plan_.width);
    carried = emit_loop(state_, vectors, plan_.width, carried, [&](llvm::Value *i, const Values &now) {
      return turned(step(at_lanes(plan_, point, i), now, 0), i, turning);
    });
    return plan_.masked ? emit_masked(rest, point, carried, nullptr) : emit_one_by_one(rest, point, carried);
  }

  // The next set becomes number 0 while there are whole blocks, after which all are back in their places.
  Values turned(const Values &carried, llvm::Value *i, llvm::Value *turning) {
    if (!turning) return carried;
    Values next = carried;
    std::ranges::rotate(next, next.begin() + static_cast<long>(stage_.carriers.types.size()));
    if (only_blocks_) return next;
    return emit_if(state_, b_.CreateICmpSLT(i, turning), carried, [&] { return next; });
  }

  // Into the lanes that a vector would have them in.
  Values emit_one_by_one(const Range &rest, const Point &point, const Values &carried) {
    llvm::SmallVector<llvm::Constant *, 16> iota;
    for (unsigned lane = 0; lane < plan_.width; ++lane) iota.push_back(b_.getInt32(lane));
    return emit_loop(state_, rest, 1, carried, [&](llvm::Value *i, const Values &now) {
      Values element = emit_body(state_, stage_.body, at_scalar(plan_, point, i));
      for (llvm::Value *&value : element) value = splat(state_, value, plan_.width);
      llvm::Value *lane = b_.CreateTrunc(b_.CreateNSWSub(i, rest.begin), b_.getInt32Ty());
      llvm::Value *is_lane = b_.CreateICmpEQ(llvm::ConstantVector::get(iota), splat(state_, lane, plan_.width));
      return chosen(is_lane, combine(set(now, 0), element, plan_.width), now);
    });
  }

  Values emit_masked(const Range &range, const Point &point, const Values &carried, llvm::Value *turning) {
    return emit_loop(state_, range, plan_.width, carried, [&](llvm::Value *i, const Values &now) {
      const Point inside = at_masked(state_, plan_, point, i, range.end);
      return turned(chosen(inside.active, set(step(inside, now, 0), 0), now), i, turning);
    });
  }

  // Set 0 is `after` in the lanes of `mask`.
  Values chosen(llvm::Value *mask, Values after, const Values &carried) {
    const Values before = set(carried, 0);
    for (size_t k = 0; k < after.size(); ++k) after[k] = b_.CreateSelect(mask, after[k], before[k]);
    Values next = carried;
    replace_set(next, 0, after);
    return next;
  }

  Values across_sets(const Values &carried) {
    Values sum = set(carried, 0);
    for (unsigned k = 1; k < sets_; ++k) sum = combine(sum, set(carried, k), plan_.width);
    return sum;
  }

  Values across_lanes(Values lanes) {
    unsigned width = plan_.width;
    while (width > 1 && width / 2 >= count_) width /= 2;  // the others hold identities
    if (width < plan_.width) {
      for (llvm::Value *&vector : lanes) vector = part(vector, 0, width);
    }
    for (width /= 2; width >= 1; width /= 2) {
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
  int64_t count_ = INT64_MAX;  // of the last axis, where it is known
  unsigned sets_ = 1;          // of carriers
  bool turns_ = false;         // one copy of the body serves all sets
  bool only_blocks_ = false;   // all points are in whole blocks
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
  Values result = emit_body(state, carriers.combine, lanes, {.carriers = both, .loaded = {}});
  for (llvm::Value *&value : result) value = splat(state, value, width);
  return result;
}

void emit_reduction(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point) {
  if (kernel::partials_in_scratch(state.kernel, stage) > 0)
    return emit_stores(state, stage.stores, emit_partial_sums(state, stage, first, point), point);
  const Reduction reduction(state, stage, first, point);
  emit_stores(state, stage.stores, reduction.result(), point);
}

}  // namespace kiln::codegen
