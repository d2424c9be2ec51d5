// LLVM's code generator as ORC's layers call it: a module in, an object file out.
#pragma once
#include <llvm/ADT/SmallVector.h>
#include <llvm/ExecutionEngine/Orc/IRCompileLayer.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "jit/base/status.h"
#include "jit/llvm/features.h"

namespace kiln::codegen {

// Not the host's: the same bytes come from every machine.
inline constexpr const char *target_triple = "x86_64-unknown-linux-gnu";

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const Features &features);

// Keeps the code generator's pass pipeline from module to module: setting it up takes a seventh of a kernel's time.
class ObjectCompiler final : public llvm::orc::IRCompileLayer::IRCompiler {
 public:
  explicit ObjectCompiler(llvm::TargetMachine &machine);
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> operator()(llvm::Module &module) override;

 private:
  llvm::SmallVector<char, 0> bytes_;  // of the object being written
  llvm::raw_svector_ostream out_;
  llvm::legacy::PassManager passes_;
  bool can_emit_;
};

}  // namespace kiln::codegen
