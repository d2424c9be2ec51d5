// From a module to an image: the code generator, and ORC's layers around JITLink.
#pragma once
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "jit/base/status.h"
#include "jit/llvm/features.h"
#include "jit/llvm/image.h"

namespace kiln::codegen {

// Owns an LLVM context, a target machine and an execution session. Used by one thread.
class Linker {
 public:
  static Result<std::unique_ptr<Linker>> create(const Features &features);
  ~Linker();

  llvm::TargetMachine &machine();
  // An empty module in this linker's context, for its target.
  std::unique_ptr<llvm::Module> make_module();
  // The assembly of a module, which stays as it is.
  std::string assembly(const llvm::Module &module);
  // `module` comes from make_module() and defines entry_name.
  Result<Image> link(std::unique_ptr<llvm::Module> module);

 private:
  struct Parts;
  explicit Linker(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace kiln::codegen
