// The IR passes that a kernel goes through. The emitter writes vectors and loops as they should be, so few are needed.
#pragma once
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>

namespace kiln::codegen {

// Set up once a thread; optimises one function after the other.
class Optimizer {
 public:
  explicit Optimizer(llvm::TargetMachine &machine);
  void run(llvm::Function &function);

 private:
  llvm::PassBuilder builder_;
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager graphs_;
  llvm::ModuleAnalysisManager modules_;
  llvm::FunctionPassManager passes_;
};

}  // namespace kiln::codegen
