// For tests of the emitter's parts: a function made by hand, compiled in this process for a feature level.
#pragma once
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <functional>
#include <memory>

#include "jit/llvm/features.h"

namespace kiln::codegen::test {

class JitFunction {
 public:
  // `emit` adds a function called "f" to the module and verifies nothing: this does.
  JitFunction(const Features &features, const std::function<void(llvm::Module &)> &emit) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::orc::JITTargetMachineBuilder machine{llvm::Triple("x86_64-unknown-linux-gnu")};
    machine.setCPU(features.cpu);
    machine.addFeatures({features.attributes});
    machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    auto target = llvm::cantFail(machine.createTargetMachine());
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("test", *context);
    module->setDataLayout(target->createDataLayout());
    module->setTargetTriple(machine.getTargetTriple().str());
    emit(*module);
    for (llvm::Function &function : *module)
      if (!function.isDeclaration()) function.addFnAttr("prefer-vector-width", std::to_string(features.vector_bits));
    if (llvm::verifyModule(*module, &llvm::errs())) abort();
    // No process symbols: code that calls out does not link.
    jit_ = llvm::cantFail(llvm::orc::LLJITBuilder()
                              .setJITTargetMachineBuilder(machine)
                              .setLinkProcessSymbolsByDefault(false)
                              .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                              .create());
    llvm::cantFail(jit_->addIRModule({std::move(module), std::move(context)}));
    address_ = llvm::cantFail(jit_->lookup("f"));
  }

  template <class Function>
  Function *as() const {
    return address_.toPtr<Function *>();
  }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  llvm::orc::ExecutorAddr address_;
};

}  // namespace kiln::codegen::test
