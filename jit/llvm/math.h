// The elementary functions as inline, straight-line code: no call leaves the kernel. (There are branches
// in sin, cos, tan and rem: around the reduction of large arguments.)
#pragma once
#include <llvm/IR/IRBuilder.h>

#include "jit/kernel/kernel.h"

namespace kiln::codegen {

// Where math is emitted, and what its target can do.
struct MathBuilder {
  llvm::IRBuilder<> &ir;
  bool fma;       // fused multiply-add instructions
  bool rounding;  // floor and round-to-even instructions
};

// A core op that is a function of floats (of class `function` in core_ops.def), rsqrt, floor, ceil, trunc or round
// (halves to even), of x or of x and y, on a scalar or a vector (of any number of lanes) of f32 or f64. All special
// values are those of C: infinities, NaN, signed zeros, subnormals in and out. Largest errors: f32 1 ulp (without
// fma 1.11; sin and cos 1.6), f64 2 ulp; erfinv, lgamma and digamma 4 (docs/accuracy.md); rem, that of C's fmod, plus y
// where the signs differ, is correctly rounded. sin, cos, tan and rem end in another basic block than they began in.
llvm::Value *emit_math(MathBuilder &b, kernel::Core op, llvm::Value *x, llvm::Value *y = nullptr);

// a * b + c, with one rounding where the target can, else with two.
llvm::Value *emit_multiply_add(MathBuilder &b, llvm::Value *a, llvm::Value *x, llvm::Value *c);

}  // namespace kiln::codegen
