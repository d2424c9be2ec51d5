#include "jit/llvm/session.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "jit/base/codegen.h"
#include "jit/kernel/kernel.h"
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

std::string ir_text(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

}  // namespace

Session::Session(const Features &features, std::unique_ptr<Linker> linker)
    : features_(features), linker_(std::move(linker)), optimizer_(linker_->machine()) {}

Result<std::unique_ptr<Session>> Session::create(const Target &target) {
  const Features features = features_of(target);
  KILN_ASSIGN(std::unique_ptr<Linker> linker, Linker::create(features));
  return std::unique_ptr<Session>(new Session(features, std::move(linker)));
}

Result<Compiled> Session::compile(ByteSpan bytes, uint32_t want) {
  KILN_ASSIGN(const kernel::Kernel kernel, kernel::parse(bytes));
  std::unique_ptr<llvm::Module> module = linker_->make_module();
  KILN_TRY(emit_kernel(kernel, features_, *module));
#ifndef NDEBUG  // a mistake of the emitter's; the sanitizers' builds look for it
  std::string why;
  llvm::raw_string_ostream out(why);
  if (llvm::verifyModule(*module, &out)) return error(Code::internal, "the emitter made invalid IR: ", why);
#endif
  optimizer_.run(*module->getFunction(entry_name));
  Compiled compiled;
  if (want & KILN_CODEGEN_IR) compiled.text += ir_text(*module);
  if (want & KILN_CODEGEN_ASM) compiled.text += linker_->assembly(*module);
  KILN_ASSIGN(compiled.image, linker_->link(std::move(module)));
  return compiled;
}

}  // namespace kiln::codegen
