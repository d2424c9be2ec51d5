#include "jit/llvm/object_compiler.h"

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetOptions.h>

#include <new>

namespace kiln::codegen {
namespace {

// The emitter writes vectors, loops and addresses as they should run, so that what many passes look for is not there;
// they took two fifths of a kernel's time. Measure code and compile time before one comes back (`./dev bench`).
struct Setting {
  const char *option, *value;
};
constexpr Setting settings[] = {
    // Addresses are base + index * size, which x86 addresses directly, and are made in the block that uses them.
    {"disable-lsr", "true"},
    {"disable-cgp", "true"},
    {"disable-constant-hoisting", "true"},
    {"disable-machine-sink", "true"},
    {"disable-x86-lea-opt", "true"},
    // Equal values are merged in IR. What is left in loops are constants, which are operands in memory or cheap.
    {"disable-machine-cse", "true"},
    {"disable-machine-licm", "true"},
    {"disable-postra-machine-licm", "true"},
    // Processors that have vectors reorder instructions themselves, and forward copies.
    {"enable-misched", "false"},
    {"disable-copyprop", "true"},
    // Few branches, and few values that live across them: splitting their ranges by regions finds nothing.
    {"disable-early-taildup", "true"},
    {"disable-tail-duplicate", "true"},
    {"enable-shrink-wrap", "false"},
    {"x86-cmov-converter", "false"},
    {"disable-x86-domain-reassignment", "true"},
    {"disable-ssc", "true"},
    {"grow-region-complexity-budget", "1"},
};

Status apply_settings() {
  llvm::StringMap<llvm::cl::Option *> &options = llvm::cl::getRegisteredOptions();
  for (const Setting &setting : settings) {
    const auto found = options.find(setting.option);
    if (found == options.end() || found->second->addOccurrence(0, setting.option, setting.value))
      return error(Code::internal, "this LLVM has no option ", setting.option);
  }
  return {};
}

// Otherwise LLVM ends the process. The exception passes through frames that know of none, so that what they hold is
// lost: the module's border (module.cpp) gives the session up.
void throw_bad_alloc(void *, const char *, bool) { throw std::bad_alloc(); }

// Once a process: LLVM keeps its options in globals, of this library alone.
const Status &initialise_llvm() {
  static const Status outcome = [] {
    llvm::install_bad_alloc_error_handler(throw_bad_alloc);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return apply_settings();
  }();
  return outcome;
}

}  // namespace

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const Features &features) {
  KILN_TRY(Status(initialise_llvm()));
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
