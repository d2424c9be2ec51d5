// Kernel IR to CUDA C++ that includes nothing: what NVRTC compiles, and what a C++ compiler builds under a shim.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "jit/base/status.h"
#include "jit/kernel/kernel.h"

namespace kiln::cuda {

// How a kernel's points (of its parallel axes, flattened) are spread over the device.
enum class Mapping : uint8_t {
  thread,  // a thread takes a point and runs its stages alone
  block,   // a block takes a point; its threads share each stage's axes, and meet between stages
};
Mapping mapping_of(const kernel::Kernel &kernel);
inline constexpr uint32_t block_threads = 256;  // at most; a block that shares points has a power of two

// The parameter that every entry takes by value, as text in the prelude. Sizes of its arrays are those of the kernel:
//   struct { void *buffers[B]; long long sizes[S]; long long points; unsigned char *scratch; unsigned *error_word; }
// `scratch` holds the bytes of kernel::scratch_layout for each block of the grid, where blocks share points.
inline constexpr size_t parameter_bytes = 4096;  // that an entry may take, by CUDA's rules

// What all kernels of a program share: helper functions with the semantics of core_ops.def.
std::string_view prelude();
// The entry function `name`. code unimplemented: more buffers than a parameter holds.
Result<std::string> emit_source(const kernel::Kernel &kernel, std::string_view name);

}  // namespace kiln::cuda
