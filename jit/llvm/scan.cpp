// Scans: the carriers go from point to point of the last axis, one by one and in order, so that the result is that of a
// plain loop whatever the level. Lanes, where there are any, lie along a parallel axis.
#include "jit/llvm/emitter.h"

namespace kiln::codegen {

void emit_scan(KernelState &state, const kernel::Stage &stage, const Point &point) {
  auto &b = state.b;
  const kernel::Carriers &carriers = stage.carriers;
  const size_t id = state.kernel.parallel.size() + stage.axes.size() - 1, count = carriers.types.size();
  const Range range = stage_range(state, stage.axes.back(), point);
  llvm::Value *last = b.CreateNSWSub(range.end, b.getInt64(1));
  emit_loop(state, range, 1, emit_identities(state, carriers, point.width), [&](llvm::Value *i, const Values &before) {
    Point inside = point;
    inside.set_axis(id, carriers.reverse ? b.CreateNSWSub(last, i) : i);
    const Values yields = emit_body(state, stage.body, inside);
    const Values element(yields.begin(), yields.begin() + static_cast<long>(count));
    Values after = emit_combination(state, carriers, before, element, point.width);
    Values results = carriers.exclusive ? before : after;
    results.append(yields.begin() + static_cast<long>(count), yields.end());
    emit_stores(state, stage.stores, results, inside);
    return after;
  });
}

}  // namespace kiln::codegen
