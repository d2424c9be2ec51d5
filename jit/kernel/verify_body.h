// What verify() holds a body to: part of verify.cpp, which says what is in scope.
#pragma once
#include <cstdint>
#include <span>

#include "jit/kernel/kernel.h"

namespace kiln::kernel {

template <class... Parts>
Status broken(const Parts &...parts) {
  return error(Code::corrupt, "kernel: ", parts...);
}

// What an expression may name. Values of the body are counted apart.
struct Scope {
  const Kernel &kernel;
  std::span<const Axis> axes;          // by id
  std::span<const uint32_t> hidden{};  // of those, what may not stand here
};
Status verify_expr(const Scope &scope, const Expr &e, size_t values = 0);
// What an access reaches: its buffer, and one index of what is in scope.
Status verify_access(const Scope &scope, const Access &access, std::span<const Value> before);

// The leaves of a body beside memory; no type: none may stand there.
struct LeafTypes {
  std::span<const DType> carriers{};  // by Core::carrier's number
  DType accumulator = DType::none;
  bool memory = true;  // whether it may read buffers
};
Status verify_body(const Scope &scope, const LeafTypes &leaves, const Body &body);

bool is_type(DType type);  // not none, and no number beyond the last

}  // namespace kiln::kernel
