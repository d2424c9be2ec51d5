// One compile thread: an LLVM context, a target machine and an ORC session that turn kernels into images, one by one.
#pragma once
#include <memory>
#include <string>

#include "jit/base/bytes.h"
#include "jit/base/status.h"
#include "jit/base/target.h"
#include "jit/llvm/image.h"

namespace kiln::codegen {

struct Compiled {
  Image image;
  std::string text;  // what `want` asked for: optimised IR, then assembly
};

// Used by one thread.
class Session {
 public:
  static Result<std::unique_ptr<Session>> create(Target::Level level);
  ~Session();

  // `kernel`: serialised (jit/kernel/kernel.h). `want`: KILN_CODEGEN_* bits.
  Result<Compiled> compile(ByteSpan kernel, uint32_t want);

 private:
  struct Parts;
  explicit Session(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace kiln::codegen
