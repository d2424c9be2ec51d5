#include "jit/llvm/session.h"

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/IRCompileLayer.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <mutex>

#include "jit/base/codegen.h"
#include "jit/kernel/kernel.h"
#include "jit/llvm/emitter.h"
#include "jit/llvm/optimize.h"

namespace kiln::codegen {
namespace {

namespace orc = llvm::orc;

// Not the host's: the same bytes come from every machine.
constexpr const char *triple = "x86_64-unknown-linux-gnu";

std::string message_of(llvm::Error failure) { return llvm::toString(std::move(failure)); }

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

std::string ir_text(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

// Code generation changes the module, so it runs on a copy.
std::string assembly_text(const llvm::Module &module, llvm::TargetMachine &machine) {
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile)) return {};
  passes.run(*copy);
  return std::string(text);
}

std::unique_ptr<orc::ExecutionSession> make_execution_session() {
  return std::make_unique<orc::ExecutionSession>(
      std::make_unique<orc::UnsupportedExecutorProcessControl>(nullptr, nullptr, triple, 4096));
}

}  // namespace

struct Session::Parts {
  Parts(const Features &level, std::unique_ptr<llvm::TargetMachine> target_machine)
      : features(level),
        machine(std::move(target_machine)),
        optimizer(*machine),
        context(std::make_unique<llvm::LLVMContext>()),
        session(make_execution_session()),
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

  Status link(std::unique_ptr<llvm::Module> module);

  const Features features;
  std::unique_ptr<llvm::TargetMachine> machine;
  Optimizer optimizer;
  orc::ThreadSafeContext context;
  ImageMemoryManager memory;
  std::string cause;
  std::unique_ptr<orc::ExecutionSession> session;
  orc::ObjectLinkingLayer link_layer;
  orc::IRCompileLayer compile_layer;
};

// Compiles and links by looking the entry up; the image is then in `memory`.
Status Session::Parts::link(std::unique_ptr<llvm::Module> module) {
  cause.clear();
  orc::JITDylib &dylib = session->createBareJITDylib("kernel");
  llvm::Error failure = compile_layer.add(dylib, orc::ThreadSafeModule(std::move(module), context));
  if (!failure) failure = session->lookup({&dylib}, session->intern(entry_name)).takeError();
  std::string why = failure ? message_of(std::move(failure)) : std::string();
  llvm::consumeError(session->removeJITDylib(dylib));
  if (why.empty() && cause.empty()) return {};
  return error(Code::internal, cause.empty() ? why : cause);
}

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(Target::Level level) {
  const Features features = features_of(level);
  KILN_ASSIGN(std::unique_ptr<llvm::TargetMachine> machine, make_machine(features));
  return std::unique_ptr<Session>(new Session(std::make_unique<Parts>(features, std::move(machine))));
}

Result<Compiled> Session::compile(ByteSpan bytes, uint32_t want) {
  KILN_ASSIGN(const kernel::Kernel kernel, kernel::parse(bytes));
  auto module = std::make_unique<llvm::Module>("kernel", *parts_->context.getContext());
  module->setTargetTriple(triple);
  module->setDataLayout(parts_->machine->createDataLayout());
  KILN_TRY(emit_kernel(kernel, parts_->features, *module));
  std::string why;
  llvm::raw_string_ostream out(why);
  if (llvm::verifyModule(*module, &out)) return error(Code::internal, "the emitter made invalid IR: ", why);

  parts_->optimizer.run(*module->getFunction(entry_name));
  Compiled compiled;
  if (want & KILN_CODEGEN_IR) compiled.text += ir_text(*module);
  if (want & KILN_CODEGEN_ASM) compiled.text += assembly_text(*module, *parts_->machine);
  KILN_TRY(parts_->link(std::move(module)));
  compiled.image = parts_->memory.take();
  return compiled;
}

}  // namespace kiln::codegen
