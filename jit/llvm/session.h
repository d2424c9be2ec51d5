// One compile thread's compiler: kernels to images, one by one.
#pragma once
#include <memory>
#include <string>

#include "jit/base/bytes.h"
#include "jit/base/status.h"
#include "jit/base/target.h"
#include "jit/llvm/linker.h"
#include "jit/llvm/optimize.h"

namespace kiln::codegen {

struct Compiled {
  Image image;
  std::string text;  // what `want` asked for: optimised IR, then assembly
};

// Used by one thread.
class Session {
 public:
  static Result<std::unique_ptr<Session>> create(const Target &target);

  // `kernel`: serialised (jit/kernel/kernel.h). `want`: KILN_CODEGEN_* bits.
  Result<Compiled> compile(ByteSpan kernel, uint32_t want);

 private:
  Session(const Features &features, std::unique_ptr<Linker> linker);

  const Features features_;
  std::unique_ptr<Linker> linker_;
  Optimizer optimizer_;
};

}  // namespace kiln::codegen
