// Map stages, and how any stage runs along a vectorised axis: whole vectors, then the rest.
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Axis;
using kernel::Schedule;
using kernel::Stage;

// The loop axes from number n on, and inside them the stage's work.
void emit_axes(KernelState &state, const Stage &stage, size_t n, const Point &point) {
  if (n < stage.axes.size() && stage.axes[n].role == Axis::Role::reduce) return emit_reduction(state, stage, n, point);
  if (n == stage.axes.size()) {
    emit_stores(state, stage.stores, emit_body(state, stage.body, point), point);
    return;
  }
  const size_t id = state.kernel.parallel.size() + n;
  const Schedule &schedule = state.kernel.schedule;
  const bool innermost = n + 1 == stage.axes.size();
  const unsigned width = innermost && schedule.vector == Schedule::Vector::inner ? schedule.lanes : 1;
  const LanePlan plan{id, width, can_mask(state, stage, id), width};
  emit_over_lanes(state, plan, stage_range(state, stage.axes[n], point), point,
                  [&](const Point &inside) { emit_axes(state, stage, n + 1, inside); });
}

}  // namespace

Point at_lanes(const LanePlan &plan, Point point, llvm::Value *i) {
  point.set_axis(plan.axis, i);
  if (plan.width == 1) return point;
  point.vector_axis = static_cast<int>(plan.axis);
  point.width = plan.width;
  point.alignment = plan.alignment;
  return point;
}

Point at_scalar(const LanePlan &plan, Point point, llvm::Value *i) {
  point.set_axis(plan.axis, i);
  return point;
}

Point at_rest(KernelState &state, const LanePlan &plan, Point point, llvm::Value *i, llvm::Value *end,
              std::optional<int64_t> count) {
  auto &b = state.b;
  llvm::SmallVector<llvm::Constant *, 16> iota;
  for (unsigned lane = 0; lane < plan.width; ++lane) iota.push_back(b.getInt32(lane));
  llvm::Value *rest =
      count ? b.getInt32(static_cast<uint32_t>(*count)) : b.CreateTrunc(b.CreateNSWSub(end, i), b.getInt32Ty());
  point = at_lanes(plan, std::move(point), i);
  point.active = b.CreateICmpULT(llvm::ConstantVector::get(iota), splat(state, rest, plan.width));
  return point;
}

LaneRanges split_range(KernelState &state, const Range &range, unsigned width) {
  auto &b = state.b;
  const int64_t step = width;
  if (range.count) {
    const int64_t whole = *range.count / step * step;
    llvm::Value *middle = b.CreateNSWAdd(range.begin, b.getInt64(static_cast<uint64_t>(whole)));
    return {{range.begin, middle, whole}, {middle, range.end, *range.count - whole}};
  }
  llvm::Value *whole = b.CreateAnd(b.CreateNSWSub(range.end, range.begin), b.getInt64(static_cast<uint64_t>(-step)));
  llvm::Value *middle = b.CreateNSWAdd(range.begin, whole);
  return {{range.begin, middle}, {middle, range.end}};
}

bool can_mask(const KernelState &state, const Stage &stage, size_t axis) {
  if (!state.kernel.schedule.masked_tail) return false;
  if (state.features.mask8) return true;
  for (const kernel::Store &store : stage.stores) {
    const kernel::Buffer &buffer = state.kernel.buffers[store.to.buffer];
    if (!state.features.masks(size_of(buffer.type))) return false;
    const std::optional<Expr> step = store.to.index[0].coefficient(static_cast<uint32_t>(axis));
    if (buffer.space != kernel::Buffer::Space::row_local && !(step && step->is(1))) return false;
  }
  return true;
}

void emit_over_lanes(KernelState &state, const LanePlan &plan, Range range, const Point &point,
                     const std::function<void(const Point &)> &body) {
  if (plan.width == 1) {
    emit_loop(state, range, 1, [&](llvm::Value *i) { body(at_scalar(plan, point, i)); });
    return;
  }
  const auto [vectors, rest] = split_range(state, range, plan.width);
  emit_loop(state, vectors, plan.width, [&](llvm::Value *i) { body(at_lanes(plan, point, i)); });
  if (rest.count == 0) return;
  if (!plan.masked) {
    emit_loop(state, rest, 1, [&](llvm::Value *i) { body(at_scalar(plan, point, i)); });
    return;
  }
  const auto masked = [&] { body(at_rest(state, plan, point, rest.begin, rest.end, rest.count)); };
  if (rest.count) {
    masked();
  } else {
    emit_if(state, state.b.CreateICmpSLT(rest.begin, rest.end), masked);
  }
}

Range stage_range(KernelState &state, const Axis &axis, const Point &point) {
  Range range{state.b.getInt64(0), emit_scalar(state, axis.extent, point)};
  if (axis.extent.is_integer()) range.count = axis.extent.integer();
  return range;
}

void emit_stage(KernelState &state, const Stage &stage, const Point &point) { emit_axes(state, stage, 0, point); }

}  // namespace kiln::codegen
