#include "jit/llvm/object_compiler.h"

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetOptions.h>

#include <mutex>

namespace kiln::codegen {
namespace {

// Loop strength reduction and the analyses that only it asks for take a fifth of a kernel's time. The emitter's loops
// have little for it: their addresses are base + index * element size, which x86 addresses directly.
void switch_off_strength_reduction() {
  llvm::StringMap<llvm::cl::Option *> &options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find("disable-lsr"); found != options.end())
    static_cast<llvm::cl::opt<bool> *>(found->second)->setValue(true);
}

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    switch_off_strength_reduction();
  });
}

}  // namespace

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const Features &features) {
  initialise_llvm();
  std::string why;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(target_triple, why);
  if (!target) return error(Code::internal, why);
  // The small code model and PIC make constants and jump tables PC-relative.
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(target_triple, features.cpu, features.attributes, llvm::TargetOptions(),
                                  llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) return error(Code::internal, "LLVM has no target machine for ", features.cpu);
  return machine;
}

ObjectCompiler::ObjectCompiler(llvm::TargetMachine &machine)
    : IRCompiler(llvm::orc::irManglingOptionsFromTargetOptions(machine.Options)), out_(bytes_) {
  llvm::MCContext *context = nullptr;
  can_emit_ = !machine.addPassesToEmitMC(passes_, context, out_);
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> ObjectCompiler::operator()(llvm::Module &module) {
  if (!can_emit_) return llvm::createStringError("the target machine writes no object files");
  bytes_.clear();
  passes_.run(module);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(llvm::SmallVector<char, 0>(bytes_),
                                                         module.getModuleIdentifier(),
                                                         /*RequiresNullTerminator=*/false);
}

}  // namespace kiln::codegen
