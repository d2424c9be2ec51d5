// Kernels to images: which kernels a compile needs, which of them the cache has, and the module that makes the others.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "jit/base/codegen.h"
#include "jit/base/device.h"
#include "jit/base/target.h"
#include "jit/kernel/fuse.h"
#include "runtime/cache/cache.h"

namespace kiln {

// A code generating module, opened when it is first asked to compile; it lies beside this library and is of the same
// build. One per context. Threads: any.
class CodegenModule {
 public:
  explicit CodegenModule(std::string file_name);

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

  // Whether it is in this process's memory, opened by this object or by another.
  bool in_memory() const;

 private:
  Result<const kiln_codegen_table *> open();

  const std::string path_;
  std::mutex mutex_;
  const kiln_codegen_table *table_ = nullptr;  // null: not opened yet
};

// The images that a compile's launches run, each distinct kernel once.
struct Kernels {
  std::vector<Bytes> bytes;        // serialised kernels
  std::vector<Image> images;       // one for each
  std::vector<std::string> texts;  // one for each, if wanted
  std::vector<uint32_t> of_launch;
  uint32_t from_cache = 0;
  std::vector<uint32_t> fresh;  // numbers of those that were compiled now; the others were in the cache
};

struct KernelRequest {
  const kernel::Fused &fused;
  std::string_view backend;
  const Target &target;
  std::string_view build_id;
  uint32_t threads = 1, want = 0;
  Cache *cache = nullptr;  // null: not asked. With texts wanted it is not asked either
  std::function<bool(std::string_view what)> progress;
};
// `module` null: no code is made, the images are empty.
Result<Kernels> compile_kernels(const KernelRequest &request, CodegenModule *module);

}  // namespace kiln
