#include "jit/llvm/linker.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/IRCompileLayer.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "jit/llvm/emitter.h"
#include "jit/llvm/object_compiler.h"

namespace kiln::codegen {
namespace {

namespace orc = llvm::orc;

std::unique_ptr<orc::ExecutionSession> make_session() {
  return std::make_unique<orc::ExecutionSession>(
      std::make_unique<orc::UnsupportedExecutorProcessControl>(nullptr, nullptr, target_triple, 4096));
}

std::string message_of(llvm::Error failure) { return llvm::toString(std::move(failure)); }

}  // namespace

struct Linker::Parts {
  explicit Parts(std::unique_ptr<llvm::TargetMachine> target_machine)
      : machine(std::move(target_machine)),
        context(std::make_unique<llvm::LLVMContext>()),
        session(make_session()),
        link_layer(*session, memory),
        compile_layer(*session, link_layer, std::make_unique<ObjectCompiler>(*machine)) {
    link_layer.addPlugin(make_image_checks());
    // ORC reports causes here, and to the caller only that something failed.
    session->setErrorReporter([this](llvm::Error failure) { add_cause(message_of(std::move(failure))); });
    // Without a handler the code generator's errors end the process.
    context.getContext()->setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo *info, void *self) {
          if (info->getSeverity() != llvm::DS_Error) return;
          std::string text;
          llvm::raw_string_ostream out(text);
          llvm::DiagnosticPrinterRawOStream printer(out);
          info->print(printer);
          static_cast<Parts *>(self)->add_cause(text);
        },
        this);
  }
  ~Parts() { llvm::consumeError(session->endSession()); }

  void add_cause(const std::string &text) {
    if (!cause.empty()) cause += "; ";
    cause += text;
  }

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
  KILN_ASSIGN(std::unique_ptr<llvm::TargetMachine> machine, make_target_machine(features));
  return std::unique_ptr<Linker>(new Linker(std::make_unique<Parts>(std::move(machine))));
}

llvm::TargetMachine &Linker::machine() { return *parts_->machine; }

std::unique_ptr<llvm::Module> Linker::make_module() {
  auto module = std::make_unique<llvm::Module>("kernel", *parts_->context.getContext());
  module->setTargetTriple(target_triple);
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
