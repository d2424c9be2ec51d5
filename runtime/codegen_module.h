// A code generating module as an object: kernels in, images out.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "jit/base/codegen.h"
#include "jit/base/device_table.h"
#include "jit/base/status.h"
#include "jit/base/target.h"
#include "runtime/plan/artifact.h"

namespace kiln {

// A code generating module, opened when it is first asked to compile; it lies beside this library and is of the same
// build. One per context. Threads: any.
class CodegenModule {
 public:
  explicit CodegenModule(std::string_view file_name);

  struct Request {
    std::vector<ByteSpan> kernels;  // serialised; each is well-formed
    Target target;
    uint32_t threads = 1;
    uint32_t want = 0;                           // KILN_CODEGEN_* bits
    std::function<bool(size_t done)> cancelled;  // may be empty; called on this thread, often
  };
  struct Output {
    Image image;  // without its key
    std::string text;
  };
  // One for each kernel, in order. Errors: the module cannot be opened (io) or is of another build (incompatible); it
  // refused a kernel (the first that it told of; others are then not waited for); cancelled.
  Result<std::vector<Output>> compile(const Request &request);
  // Of a module that runs what it compiles. It lives as long as the process.
  Result<const kiln_device_table *> device_table();

  // What compiles kernels outside of Kiln's own build: "NVRTC 13.0". Empty: nothing does, or it cannot be opened, which
  // compile() tells. Errors: as compile's of the module.
  Result<std::string> compiler();

  // Whether it is in this process's memory, opened by this object or by another.
  bool in_memory() const;

 private:
  Result<const kiln_codegen_table *> open();

  const std::string path_;
  std::mutex mutex_;
  const kiln_codegen_table *table_ = nullptr;  // null: not opened yet
};

}  // namespace kiln
