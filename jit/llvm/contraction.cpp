// Contractions as plain loops: vectors along n (or m), one row at a time, k innermost.
#include "jit/llvm/emitter.h"

namespace kiln::codegen {

void emit_contraction(KernelState &state, const Point &point, Range m, Range n) {
  const kernel::Stage &stage = state.kernel.stages[0];
  const kernel::Contract &contract = *stage.contract;
  const kernel::Schedule &schedule = state.kernel.schedule;
  const size_t k_axis = state.kernel.parallel.size(), n_axis = k_axis - 1, m_axis = k_axis - 2;
  const auto [row_axis, lane_axis] = schedule.vector_m ? std::pair{n_axis, m_axis} : std::pair{m_axis, n_axis};
  const auto [rows, lanes] = schedule.vector_m ? std::pair{n, m} : std::pair{m, n};
  const LanePlan plan{lane_axis, schedule.lanes, can_mask(state, stage, lane_axis), 1};
  llvm::Type *type = type_of(state, contract.accumulator);
  emit_loop(state, rows, 1, [&](llvm::Value *row) {
    Point outside = point;
    outside.set_axis(row_axis, row);
    emit_over_lanes(state, plan, lanes, outside, [&](const Point &at) {
      llvm::Value *zero = splat(state, llvm::Constant::getNullValue(type), at.width);
      const Values sum =
          emit_loop(state, stage_range(state, stage.axes[0], at), 1, {zero}, [&](llvm::Value *k, const Values &now) {
            Point inside = at;
            inside.set_axis(k_axis, k);
            llvm::Value *a = splat(state, emit_body(state, contract.a, inside)[0], at.width);
            llvm::Value *b = splat(state, emit_body(state, contract.b, inside)[0], at.width);
            return Values{emit_multiply_add(state, a, b, now[0])};
          });
      emit_stores(state, stage.stores, emit_body(state, stage.body, at, {.carriers = {}, .accumulator = sum[0]}), at);
    });
  });
}

}  // namespace kiln::codegen
