// Bodies: one LLVM value for each value of the SSA list, in order.
#include <algorithm>
#include <array>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

// Of a comparison of indices, in which masks begin, its operands in as few bits as the lanes of a vector have: LLVM
// compares vectors of i64 a few lanes at a time and packs what comes out. Empty: they are as they were made.
Values narrow_operands(KernelState &state, const kernel::Body &body, const kernel::Value &value, const Values &done,
                       const Point &point) {
  if (kernel::core_info(value.op).group != kernel::CoreGroup::compare || point.width * 64 <= state.features.vector_bits)
    return {};
  const std::array arguments = {static_cast<size_t>(value.args[0]), static_cast<size_t>(value.args[1])};
  if (std::ranges::none_of(arguments, [&](size_t k) { return done[k]->getType()->isVectorTy(); })) return {};
  Values narrow;
  for (const size_t k : arguments) {
    if (body.values[k].op != kernel::Core::index) return {};
    narrow.push_back(emit_narrow_lanes(state, body.values[k].expr, point, done));
    if (!narrow.back()) return {};
  }
  return narrow;
}

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
  if (const Values narrow = narrow_operands(state, body, value, done, point); !narrow.empty()) operands = narrow;
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

void emit_map(KernelState &state, const kernel::Stage &stage, const Point &point) {
  // An output of several stores lies where no input does (kernel::in_place()).
  const auto is_one_of_many = [&](const kernel::Store &store) {
    return stage.stores.size() > 1 && !store.combines() && !store.scatters() && store.to.valid < 0 &&
           store.to.buffer == stage.stores[0].to.buffer &&
           state.kernel.buffers[store.to.buffer].space == kernel::Buffer::Space::out;
  };
  const auto is_read_too = [&](const kernel::Value &value) {
    return kernel::reads_memory(value.op) && value.access.buffer == stage.stores[0].to.buffer;
  };
  if (!std::ranges::all_of(stage.stores, is_one_of_many) || std::ranges::any_of(stage.body.values, is_read_too))
    return emit_stores(state, stage.stores, emit_body(state, stage.body, point), point);
  Values done, results(stage.body.yields.size(), nullptr);
  for (const kernel::Value &value : stage.body.values) {
    done.push_back(emit_value(state, stage.body, value, done, point, {}));
    for (const kernel::Store &store : stage.stores) {
      const auto number = static_cast<size_t>(store.value);
      if (static_cast<size_t>(stage.body.yields[number]) + 1 != done.size()) continue;
      results[number] = done.back();
      emit_store(state, store, results, point);
    }
  }
}

void emit_stores(KernelState &state, std::span<const kernel::Store> stores, const Values &results, const Point &point) {
  for (const kernel::Store &store : stores) emit_store(state, store, results, point);
}

}  // namespace kiln::codegen
