#include "jit/llvm/optimize.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/InstSimplifyPass.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

namespace kiln::codegen {
namespace {

// |x| compared with 0, as x compared with 0: LLVM 19 takes from what such a comparison selects that it is not below 0,
// though it may be (computeKnownFPClass: with %s = select(fabs(x) <= 0, 0, x) it makes %s < 0 false). Found by random
// graphs; can go when the LLVM that we build with gets Optimizer.ComparesMagnitudesWithZero right without it.
void avoid_magnitudes_beside_zero(llvm::Function &function) {
  namespace match = llvm::PatternMatch;
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    auto *comparison = llvm::dyn_cast<llvm::FCmpInst>(&instruction);
    if (!comparison) continue;
    if (match::match(comparison->getOperand(0), match::m_AnyZeroFP())) comparison->swapOperands();
    llvm::Value *x = nullptr;
    if (!match::match(comparison->getOperand(0), match::m_FAbs(match::m_Value(x))) ||
        !match::match(comparison->getOperand(1), match::m_AnyZeroFP()))
      continue;
    // A predicate is a set of outcomes. Less than 0 is none of |x|'s; greater is where x is not 0, on either side.
    constexpr unsigned equal = llvm::CmpInst::FCMP_OEQ, greater = llvm::CmpInst::FCMP_OGT,
                       less = llvm::CmpInst::FCMP_OLT, unordered = llvm::CmpInst::FCMP_UNO;
    const unsigned now = comparison->getPredicate();
    const unsigned of_x = (now & (equal | unordered)) | (now & greater ? greater | less : 0);
    comparison->setOperand(0, x);
    comparison->setPredicate(static_cast<llvm::CmpInst::Predicate>(of_x));
  }
}

}  // namespace

Optimizer::Optimizer(llvm::TargetMachine &machine) : builder_(&machine) {
  builder_.registerModuleAnalyses(modules_);
  builder_.registerCGSCCAnalyses(graphs_);
  builder_.registerFunctionAnalyses(functions_);
  builder_.registerLoopAnalyses(loops_);
  builder_.crossRegisterProxies(loops_, functions_, graphs_, modules_);
  passes_.addPass(llvm::EarlyCSEPass());
  passes_.addPass(llvm::InstSimplifyPass());
  passes_.addPass(llvm::SimplifyCFGPass());
}

void Optimizer::run(llvm::Function &function) {
  avoid_magnitudes_beside_zero(function);
  passes_.run(function, functions_);
  // Results are kept by address: they must not outlive the function.
  loops_.clear();
  functions_.clear();
  graphs_.clear();
  modules_.clear();
}

}  // namespace kiln::codegen
