// Control flow. Loops are emitted in rotated form (a guard, then do-while), which the code generator likes best, and
// not at all where the number of passes is known to be 0 or 1. Arithmetic that does not change inside a loop is moved
// out as soon as the loop is complete; inner loops come first, so that it ends up as far out as it can.
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ValueTracking.h>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

llvm::BasicBlock *add_block(KernelState &state, const char *name) {
  return llvm::BasicBlock::Create(state.b.getContext(), name, state.function);
}

std::optional<int64_t> passes_of(const Range &range, int64_t step) {
  std::optional<int64_t> count = range.count;
  auto *begin = llvm::dyn_cast<llvm::ConstantInt>(range.begin), *end = llvm::dyn_cast<llvm::ConstantInt>(range.end);
  if (!count && begin && end) count = end->getSExtValue() - begin->getSExtValue();
  if (!count) return std::nullopt;
  return *count <= 0 ? 0 : (*count + step - 1) / step;
}

// `first` and all blocks after it are the loop's; `before` branches to it.
void hoist_invariants(llvm::BasicBlock *before, llvm::BasicBlock *first) {
  llvm::SmallPtrSet<const llvm::BasicBlock *, 16> inside;
  for (auto block = first->getIterator(); block != first->getParent()->end(); ++block) inside.insert(&*block);
  const auto is_outside = [&](const llvm::Use &use) {
    const auto *instruction = llvm::dyn_cast<llvm::Instruction>(use.get());
    return !instruction || !inside.contains(instruction->getParent());
  };
  for (auto block = first->getIterator(); block != first->getParent()->end(); ++block) {
    for (llvm::Instruction &i : llvm::make_early_inc_range(*block)) {
      if (llvm::isa<llvm::PHINode>(i) || i.isTerminator() || i.mayReadOrWriteMemory()) continue;
      if (llvm::all_of(i.operands(), is_outside) && llvm::isSafeToSpeculativelyExecute(&i))
        i.moveBefore(before->getTerminator());
    }
  }
}

}  // namespace

Values emit_loop(KernelState &state, Range range, int64_t step, Values initial,
                 const std::function<Values(llvm::Value *i, const Values &carried)> &body) {
  const std::optional<int64_t> passes = passes_of(range, step);
  if (passes == 0) return initial;
  if (passes == 1) return body(range.begin, initial);

  auto &b = state.b;
  llvm::BasicBlock *before = b.GetInsertBlock();
  // Blocks lie in the order of control flow: `after` joins the function when the loop is complete.
  llvm::BasicBlock *loop = add_block(state, "loop"), *after = llvm::BasicBlock::Create(b.getContext(), "after");
  if (passes) {
    b.CreateBr(loop);
  } else {
    b.CreateCondBr(b.CreateICmpSLT(range.begin, range.end), loop, after);
  }

  b.SetInsertPoint(loop);
  llvm::PHINode *i = b.CreatePHI(b.getInt64Ty(), 2, "i");
  i->addIncoming(range.begin, before);
  Values carried;
  for (llvm::Value *value : initial) {
    llvm::PHINode *phi = b.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    carried.push_back(phi);
  }
  Values next = body(i, carried);
  llvm::BasicBlock *latch = b.GetInsertBlock();
  llvm::Value *i_next = b.CreateNSWAdd(i, b.getInt64(static_cast<uint64_t>(step)));
  i->addIncoming(i_next, latch);
  for (size_t n = 0; n < next.size(); ++n) llvm::cast<llvm::PHINode>(carried[n])->addIncoming(next[n], latch);
  b.CreateCondBr(b.CreateICmpSLT(i_next, range.end), loop, after);
  hoist_invariants(before, loop);

  after->insertInto(state.function);
  b.SetInsertPoint(after);
  if (passes) return next;
  Values results;
  for (size_t n = 0; n < next.size(); ++n) {
    llvm::PHINode *phi = b.CreatePHI(next[n]->getType(), 2);
    phi->addIncoming(initial[n], before);
    phi->addIncoming(next[n], latch);
    results.push_back(phi);
  }
  return results;
}

void emit_loop(KernelState &state, Range range, int64_t step, const std::function<void(llvm::Value *i)> &body) {
  emit_loop(state, range, step, {}, [&](llvm::Value *i, const Values &) {
    body(i);
    return Values{};
  });
}

Values emit_repeat(KernelState &state, const Values &initial,
                   const std::function<Repeated(const Values &carried)> &body) {
  auto &b = state.b;
  llvm::BasicBlock *before = b.GetInsertBlock();
  llvm::BasicBlock *loop = add_block(state, "repeat"), *after = llvm::BasicBlock::Create(b.getContext(), "after");
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  Values carried;
  for (llvm::Value *value : initial) {
    llvm::PHINode *phi = b.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    carried.push_back(phi);
  }
  const Repeated next = body(carried);
  llvm::BasicBlock *latch = b.GetInsertBlock();
  for (size_t n = 0; n < carried.size(); ++n) llvm::cast<llvm::PHINode>(carried[n])->addIncoming(next.values[n], latch);
  b.CreateCondBr(next.again, loop, after);
  hoist_invariants(before, loop);
  after->insertInto(state.function);
  b.SetInsertPoint(after);
  return next.values;
}

Values emit_if(KernelState &state, llvm::Value *condition, Values otherwise, const std::function<Values()> &then) {
  auto &b = state.b;
  llvm::BasicBlock *before = b.GetInsertBlock();
  llvm::BasicBlock *yes = add_block(state, "then"), *after = llvm::BasicBlock::Create(b.getContext(), "after");
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  const Values values = then();
  llvm::BasicBlock *end = b.GetInsertBlock();
  b.CreateBr(after);
  after->insertInto(state.function);
  b.SetInsertPoint(after);
  Values results;
  for (size_t n = 0; n < values.size(); ++n) {
    llvm::PHINode *phi = b.CreatePHI(values[n]->getType(), 2);
    phi->addIncoming(otherwise[n], before);
    phi->addIncoming(values[n], end);
    results.push_back(phi);
  }
  return results;
}

void emit_if(KernelState &state, llvm::Value *condition, const std::function<void()> &then) {
  emit_if(state, condition, {}, [&] {
    then();
    return Values{};
  });
}

void emit_if_else(KernelState &state, llvm::Value *condition, const std::function<void()> &then,
                  const std::function<void()> &otherwise) {
  auto &b = state.b;
  llvm::BasicBlock *yes = add_block(state, "then"), *no = llvm::BasicBlock::Create(b.getContext(), "else"),
                   *after = llvm::BasicBlock::Create(b.getContext(), "after");
  b.CreateCondBr(condition, yes, no);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  no->insertInto(state.function);
  b.SetInsertPoint(no);
  otherwise();
  b.CreateBr(after);
  after->insertInto(state.function);
  b.SetInsertPoint(after);
}

llvm::Value *less_of(KernelState &state, llvm::Value *x, llvm::Value *y) {
  return state.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
}

llvm::Value *greater_of(KernelState &state, llvm::Value *x, llvm::Value *y) {
  return state.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
}

}  // namespace kiln::codegen
