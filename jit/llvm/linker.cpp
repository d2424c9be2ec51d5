#include "jit/llvm/linker.h"

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/IRCompileLayer.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <mutex>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

namespace orc = llvm::orc;

// Not the host's: the same bytes come from every machine.
constexpr const char *triple = "x86_64-unknown-linux-gnu";

Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const Features &features) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string why;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, why);
  if (!target) return error(Code::internal, why);
  // The small code model and PIC make constants and jump tables PC-relative.
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, features.cpu, features.attributes, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) return error(Code::internal, "LLVM has no target machine for ", features.cpu);
  return machine;
}

std::unique_ptr<orc::ExecutionSession> make_session() {
  return std::make_unique<orc::ExecutionSession>(
      std::make_unique<orc::UnsupportedExecutorProcessControl>(nullptr, nullptr, triple, 4096));
}

std::string message_of(llvm::Error failure) { return llvm::toString(std::move(failure)); }

}  // namespace

struct Linker::Parts {
  explicit Parts(std::unique_ptr<llvm::TargetMachine> target_machine)
      : machine(std::move(target_machine)),
        context(std::make_unique<llvm::LLVMContext>()),
        session(make_session()),
        link_layer(*session, memory),
        compile_layer(*session, link_layer, std::make_unique<orc::SimpleCompiler>(*machine)) {
    link_layer.addPlugin(make_image_checks());
    // ORC reports causes here, and to the caller only that something failed.
    session->setErrorReporter([this](llvm::Error failure) {
      if (!cause.empty()) cause += "; ";
      cause += message_of(std::move(failure));
    });
  }
  ~Parts() { llvm::consumeError(session->endSession()); }

  std::unique_ptr<llvm::TargetMachine> machine;
  orc::ThreadSafeContext context;
  ImageMemoryManager memory;
  std::string cause;
  std::unique_ptr<orc::ExecutionSession> session;
  orc::ObjectLinkingLayer link_layer;
  orc::IRCompileLayer compile_layer;
};

Linker::Linker(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Linker::~Linker() = default;

Result<std::unique_ptr<Linker>> Linker::create(const Features &features) {
  KILN_ASSIGN(std::unique_ptr<llvm::TargetMachine> machine, make_machine(features));
  return std::unique_ptr<Linker>(new Linker(std::make_unique<Parts>(std::move(machine))));
}

llvm::TargetMachine &Linker::machine() { return *parts_->machine; }

std::unique_ptr<llvm::Module> Linker::make_module() {
  auto module = std::make_unique<llvm::Module>("kernel", *parts_->context.getContext());
  module->setTargetTriple(triple);
  module->setDataLayout(parts_->machine->createDataLayout());
  return module;
}

std::string Linker::assembly(const llvm::Module &module) {
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);  // code generation changes it
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  if (parts_->machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile)) return {};
  passes.run(*copy);
  return std::string(text);
}

// Looking the entry up is what compiles and links; the image is then in `memory`.
Result<Image> Linker::link(std::unique_ptr<llvm::Module> module) {
  Parts &p = *parts_;
  p.cause.clear();
  orc::JITDylib &dylib = p.session->createBareJITDylib("kernel");
  llvm::Error failure = p.compile_layer.add(dylib, orc::ThreadSafeModule(std::move(module), p.context));
  if (!failure) failure = p.session->lookup({&dylib}, p.session->intern(entry_name)).takeError();
  const std::string why = failure ? message_of(std::move(failure)) : std::string();
  llvm::consumeError(p.session->removeJITDylib(dylib));
  if (!why.empty() || !p.cause.empty()) return error(Code::internal, p.cause.empty() ? why : p.cause);
  return p.memory.take();
}

}  // namespace kiln::codegen
