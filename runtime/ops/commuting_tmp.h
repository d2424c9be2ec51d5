#pragma once
#include "runtime/ops/op.h"
namespace kiln::op_flags {
inline constexpr uint32_t commutes = 4096;
}
namespace kiln::ops {
Op commuting(Op op);
}
