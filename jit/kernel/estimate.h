// What a kernel comes to: an estimate for people, which nothing decides by.
#pragma once
#include "jit/base/expr.h"
#include "jit/kernel/kernel.h"

namespace kiln::kernel {

// Over Kernel::symbols. Bytes: of memory, each element that the kernel may touch once, as if caches were perfect.
// Flops: operations on numbers of any type, counted in additions (core_ops.def: an exp is 16), a product that is summed
// up 2.
struct Estimate {
  Expr bytes, flops;
};
Estimate estimate(const Kernel &kernel);

}  // namespace kiln::kernel
