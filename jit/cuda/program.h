// Kernels to programs: which kernels a request has, how they are named and put together, and what came of each.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/codegen.h"
#include "jit/base/status.h"

namespace kiln::cuda {

// A distinct kernel of a request.
struct Entry {
  std::string name;    // made of its bytes: the same wherever it is compiled
  std::string source;  // CUDA C++, without the prelude
  kiln_kernel_use use{};
  Status status;  // it cannot be emitted
};

// The kernels of a request, each distinct one once.
struct Entries {
  std::vector<Entry> distinct;    // in order of first appearance
  std::vector<size_t> of_kernel;  // for each kernel of the request
};
Entries emit_entries(std::span<const ByteSpan> kernels);

// What NVRTC made of a program; how its entries are spread over the device, and registers, are in `use`.
struct Program {
  Status status;
  Bytes code;
  std::string compiler;  // "NVRTC 13.0"
};
// Compiles entries that can be emitted, and fills what ptxas says into their `use`. Threads: any, on entries of their
// own.
Program compile_program(std::span<Entry> entries, std::string_view arch);

}  // namespace kiln::cuda
