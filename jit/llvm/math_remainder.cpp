// The remainder of a division rounded down: congruent to x modulo y and of y's sign. It is found exactly, by taking
// multiples of y from x that leave no rounding error; only what then has the other sign is rounded, when y is added.
//
// A step takes away the nearest multiple. It is exact for quotients that leave room in a significand: what is left is a
// multiple of the last place of y and less than y. Larger quotients go by long division, a step by y times a power of
// two each, in a block of their own which runs when any lane has one.
#include <llvm/IR/MDBuilder.h>

#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

constexpr int step_bits = 20;  // of a quotient

// Whether a step's product can be had without rounding: in f64 that takes an instruction.
bool has_step(const Num &x) { return x.builder().fma || !x.is_double(); }

// x - q y for the integer q nearest to x / y. Exact where |y| <= |x| < 2^step_bits |y|.
Num step(const Num &x, const Num &y) {
  llvm::IRBuilder<> &ir = x.ir();
  const double magic = format_of(x).magic;
  Num q = (x / y + magic) - magic;
  if (x.builder().fma) return multiply_add(q, x.with(ir.CreateFNeg(y.value())), x);
  const auto widened = [&](const Num &n) { return n.with(ir.CreateFPExt(n.value(), n.type_of(ir.getDoubleTy()))); };
  return x.with(ir.CreateFPTrunc((widened(x) - widened(q) * widened(y)).value(), x.type()));
}

// |y| times the power of two that a pass divides |x| >= |y| by: the quotient has step_bits, or without steps is 1 to 2.
Num divisor_for(const Num &x, const Num &y) {
  Num distance = split(x).exponent - split(y).exponent - (has_step(x) ? step_bits : 1);
  Num shift = integer_of(at_least(distance, 0) + format_of(x).magic), half = shift >> 1;
  // A subnormal may have to become a very large number, which no single power of two makes of it.
  Num scaled = times_power_of_two(times_power_of_two(y, half), shift - half);
  if (has_step(x)) return scaled;
  Num twice = scaled + scaled;
  return select(x >= twice, twice, scaled);
}

// Long division: x, in lanes where `large`, less multiples of y until |x| < |y|.
Num reduce_far(const Num &x, const Num &y, const Num &large) {
  llvm::IRBuilder<> &ir = x.ir();
  llvm::BasicBlock *before = ir.GetInsertBlock();
  llvm::BasicBlock *loop = llvm::BasicBlock::Create(ir.getContext(), "pass", before->getParent());
  llvm::BasicBlock *after = llvm::BasicBlock::Create(ir.getContext(), "divided", before->getParent());
  ir.CreateBr(loop);
  ir.SetInsertPoint(loop);
  llvm::PHINode *rest_phi = ir.CreatePHI(x.type(), 2), *again_phi = ir.CreatePHI(large.type(), 2);
  Num rest = x.with(rest_phi), again = x.with(again_phi), size = abs(rest);
  Num divisor = divisor_for(size, abs(y));
  Num next = select(again, has_step(x) ? step(rest, divisor) : rest - copysign(divisor, rest), rest);
  Num more = again & (abs(next) >= abs(y)) & (abs(next) < size);  // the last ends it whatever the arithmetic is
  rest_phi->addIncoming(x.value(), before);
  rest_phi->addIncoming(next.value(), loop);
  again_phi->addIncoming(large.value(), before);
  again_phi->addIncoming(more.value(), loop);
  ir.CreateCondBr(any(more), loop, after);
  ir.SetInsertPoint(after);
  return next;
}

// Congruent to x, of either sign, |result| < |y|; NaN if x is infinite or y is 0.
Num reduce(const Num &x, const Num &y) {
  llvm::IRBuilder<> &ir = x.ir();
  const Num finite = (abs(x) < infinity) & (abs(y) > 0.0);
  const Num near = has_step(x) ? select(abs(y) > abs(x), x, step(x, y)) : select(finite, x, not_a_number);
  const Num large = finite & (has_step(x) ? abs(x / y) >= double{1 << step_bits} : abs(x) >= abs(y));
  llvm::BasicBlock *start = ir.GetInsertBlock();
  llvm::BasicBlock *slow = llvm::BasicBlock::Create(ir.getContext(), "far", start->getParent());
  llvm::BasicBlock *join = llvm::BasicBlock::Create(ir.getContext(), "join", start->getParent());
  llvm::MDBuilder metadata(ir.getContext());
  ir.CreateCondBr(any(large), slow, join, metadata.createUnlikelyBranchWeights());
  ir.SetInsertPoint(slow);
  const Num far = reduce_far(select(large, x, near), y, large);
  llvm::BasicBlock *slow_end = ir.GetInsertBlock();
  ir.CreateBr(join);
  ir.SetInsertPoint(join);
  llvm::PHINode *phi = ir.CreatePHI(x.type(), 2);
  phi->addIncoming(far.value(), slow_end);
  phi->addIncoming(near.value(), start);
  return x.with(phi);
}

}  // namespace

Num remainder(const Num &x, const Num &y) {
  Num rest = reduce(x, y);
  Num signed_rest = select((rest < 0.0) ^ (y < 0.0), rest + y, rest);
  return select(rest == 0.0, copysign(x.literal(0), x), signed_rest);
}

}  // namespace kiln::codegen::math
