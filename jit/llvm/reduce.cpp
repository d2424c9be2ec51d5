// Reductions. Where the innermost reduce axis is vectorised, each lane has partial carriers of its own; at the end the
// combine body runs on halves, quarters, ... of the vectors down to one lane. Points beyond the last whole vector are
// combined under a mask, or into carriers of their own that come last. So the order is that of the schedule.
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Axis;
using kernel::Schedule;

class Reduction {
 public:
  Reduction(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point)
      : state_(state), b_(state.b), stage_(stage), outside_(point) {
    const Schedule &schedule = state.kernel.schedule;
    const Axis &last = stage.axes.back();
    plan_ = {state.kernel.parallel.size() + stage.axes.size() - 1, 1, false, 1};
    if (schedule.vector == Schedule::Vector::inner && !point.is_vector()) {
      plan_.width = schedule.lanes;
      plan_.alignment = schedule.lanes;
      plan_.masked = schedule.masked_tail;
      if (!plan_.masked && last.extent.is_integer() && last.extent.integer() < plan_.width) plan_.width = 1;
    }
    own_rest_ =
        plan_.width > 1 && !plan_.masked && !(last.extent.is_integer() && last.extent.integer() % plan_.width == 0);

    Values carriers = identities(plan_.width > 1 ? plan_.width : point.width);
    if (own_rest_) carriers.append(identities(1));
    result_ = emit_axes(first, point, carriers);
    if (plan_.width > 1) result_ = across_lanes(result_);
  }

  const Values &result() const { return result_; }

 private:
  size_t size() const { return stage_.carriers.types.size(); }
  Values first(const Values &values) const {
    return Values(values.begin(), values.begin() + static_cast<long>(size()));
  }
  Values second(const Values &values) const { return Values(values.begin() + static_cast<long>(size()), values.end()); }

  Values identities(unsigned width) {
    Values values;
    for (size_t i = 0; i < size(); ++i) {
      llvm::Value *identity = constant_of(state_, stage_.carriers.types[i], stage_.carriers.identities[i]);
      values.push_back(splat(state_, identity, width));
    }
    return values;
  }

  Values combine(const Values &left, const Values &right, unsigned width) {
    Point lanes;
    lanes.width = width;
    Values both = left;
    both.append(right);
    Values result = emit_body(state_, stage_.carriers.combine, lanes, {.carriers = both});
    for (llvm::Value *&value : result) value = splat(state_, value, width);
    return result;
  }

  Values step(const Point &point, const Values &carried) {
    return combine(carried, emit_body(state_, stage_.body, point), point.width);
  }

  // `carried`: the carriers, then, where the rest has its own, those.
  Values emit_axes(size_t n, const Point &point, const Values &carried) {
    if (n == stage_.axes.size()) return step(point, carried);
    const size_t id = state_.kernel.parallel.size() + n;
    const Range range = stage_range(state_, stage_.axes[n], point);
    if (id == plan_.axis && plan_.width > 1) return emit_lanes_of(range, point, carried);
    return emit_loop(state_, range, 1, carried, [&](llvm::Value *i, const Values &now) {
      Point inside = point;
      inside.set_axis(id, i);
      return emit_axes(n + 1, inside, now);
    });
  }

  Values emit_lanes_of(const Range &range, const Point &point, const Values &carried) {
    const auto [vectors, rest] = split_range(state_, range, plan_.width);
    Values lanes = emit_loop(state_, vectors, plan_.width, first(carried),
                             [&](llvm::Value *i, const Values &now) { return step(at_lanes(plan_, point, i), now); });
    if (rest.count == 0) return lanes;
    if (own_rest_) {
      lanes.append(emit_loop(state_, rest, 1, second(carried),
                             [&](llvm::Value *i, const Values &now) { return step(at_scalar(plan_, point, i), now); }));
      return lanes;
    }
    const auto masked = [&, begin = rest.begin, end = rest.end, count = rest.count] {
      const Point inside = at_rest(state_, plan_, point, begin, end, count);
      Values next = step(inside, lanes);
      for (size_t i = 0; i < next.size(); ++i) next[i] = b_.CreateSelect(inside.active, next[i], lanes[i]);
      return next;
    };
    if (rest.count) return masked();
    return emit_if(state_, b_.CreateICmpSLT(rest.begin, rest.end), lanes, masked);
  }

  Values across_lanes(const Values &carried) {
    Values lanes = first(carried);
    for (unsigned width = plan_.width / 2; width >= 1; width /= 2) {
      Values low, high;
      for (llvm::Value *vector : lanes) {
        low.push_back(part(vector, 0, width));
        high.push_back(part(vector, width, width));
      }
      lanes = combine(low, high, width);
    }
    return own_rest_ ? combine(lanes, second(carried), 1) : lanes;
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
  const Point &outside_;
  LanePlan plan_;
  bool own_rest_;  // the points beyond whole vectors have scalar carriers
  Values result_;
};

}  // namespace

void emit_reduction(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point) {
  const Reduction reduction(state, stage, first, point);
  emit_stores(state, stage.stores, reduction.result(), point);
}

}  // namespace kiln::codegen
