#include "jit/llvm/optimize.h"

#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/InstSimplifyPass.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

namespace kiln::codegen {

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
  passes_.run(function, functions_);
  // Results are kept by address: they must not outlive the function.
  loops_.clear();
  functions_.clear();
  graphs_.clear();
  modules_.clear();
}

}  // namespace kiln::codegen
