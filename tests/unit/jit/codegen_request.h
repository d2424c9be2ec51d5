// A request to a module that compiles, with the memory that it points to.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/codegen.h"

namespace kiln::test {

class CodegenRequest {
 public:
  // `kernels` stay as long as this does.
  CodegenRequest(const std::vector<Bytes> &kernels, std::string_view target, uint32_t threads, uint32_t want)
      : target_(target) {
    for (const Bytes &kernel : kernels) {
      data_.push_back(kernel.data());
      sizes_.push_back(kernel.size());
    }
    c.kernels = data_.data();
    c.kernel_sizes = sizes_.data();
    c.kernel_count = kernels.size();
    c.target = target_.data();
    c.target_size = target_.size();
    c.threads = threads;
    c.want = want;
  }
  CodegenRequest(const CodegenRequest &) = delete;
  CodegenRequest &operator=(const CodegenRequest &) = delete;

  kiln_codegen_request c{};

 private:
  std::vector<const uint8_t *> data_;
  std::vector<uint64_t> sizes_;
  const std::string target_;
};

}  // namespace kiln::test
