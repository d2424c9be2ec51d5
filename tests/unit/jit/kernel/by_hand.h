// The parts of kernels that tests write by hand.
#pragma once
#include <utility>

#include "jit/kernel/compute.h"
#include "jit/kernel/kernel.h"

namespace kiln::kernel::testing {

inline Buffer in(DType type, Expr size = 0) { return {type, Buffer::Space::in, std::move(size)}; }
inline Buffer out(DType type, Expr size = 0) { return {type, Buffer::Space::out, std::move(size)}; }
inline Buffer row_local(DType type, Expr size) { return {type, Buffer::Space::row_local, std::move(size)}; }
inline Axis parallel(Expr extent) { return {std::move(extent), Axis::Role::parallel}; }
inline Axis loop(Expr extent) { return {std::move(extent), Axis::Role::loop}; }
inline Axis reduce(Expr extent) { return {std::move(extent), Axis::Role::reduce}; }
inline Axis scan(Expr extent) { return {std::move(extent), Axis::Role::scan}; }
inline Expr axis(uint32_t id, Expr extent) { return Expr::axis(id, std::move(extent)); }
inline Store store_at(uint16_t buffer, Expr index, int32_t value = 0, Store::Mode mode = Store::Mode::plain,
                      int32_t valid = -1) {
  return {{.buffer = buffer, .index = {std::move(index)}, .valid = valid, .fill = 0}, value, mode};
}

}  // namespace kiln::kernel::testing
