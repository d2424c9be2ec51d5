// Bodies: one LLVM value for each value of the SSA list, in order.
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

llvm::Value *emit_value(KernelState &state, const kernel::Body &body, const kernel::Value &value, const Values &done,
                        const Point &point, const Leaves &leaves) {
  using kernel::Core;
  if (done.size() < leaves.loaded.size() && leaves.loaded[done.size()]) return leaves.loaded[done.size()];
  switch (value.op) {
    case Core::constant:
      return constant_of(state, value.type, value.immediate);
    case Core::carrier:
      return leaves.carriers[value.immediate];
    case Core::accumulator:
      return leaves.accumulator;
    case Core::index: {
      const LaneIndex at = emit_index(state, value.expr, point, done);
      return at.uniform() ? at.base : emit_lanes(state, at, point);
    }
    case Core::load: {
      llvm::Value *valid = value.access.valid < 0 ? nullptr : done[static_cast<size_t>(value.access.valid)];
      return emit_load(state, value.access, emit_index(state, value.access.index[0], point, done), point, valid);
    }
    case Core::search: {
      llvm::Value *valid = value.access.valid < 0 ? nullptr : done[static_cast<size_t>(value.access.valid)];
      return emit_search(state, value, done[static_cast<size_t>(value.args[0])], point, valid, done);
    }
    default:
      break;
  }
  Values operands;
  CoreTypes types{value.type, value.type};
  for (int i = 0; i < kernel::core_info(value.op).operands; ++i) {
    const auto operand = static_cast<size_t>(value.args[static_cast<size_t>(i)]);
    operands.push_back(done[operand]);
    types.operand = body.values[operand].type;
  }
  return emit_core(state, value.op, types, operands, point.active);
}

}  // namespace

Values emit_body(KernelState &state, const kernel::Body &body, const Point &point, const Leaves &leaves) {
  Values done;
  for (const kernel::Value &value : body.values) done.push_back(emit_value(state, body, value, done, point, leaves));
  Values yields;
  for (int32_t yield : body.yields) yields.push_back(done[static_cast<size_t>(yield)]);
  return yields;
}

void emit_stores(KernelState &state, std::span<const kernel::Store> stores, const Values &results, const Point &point) {
  for (const kernel::Store &store : stores) emit_store(state, store, results, point);
}

}  // namespace kiln::codegen
