// The CUDA driver, opened at run time: a table of the functions that Kiln calls, with types declared here from the
// documented C API, since neither its header nor its library may be there at build time.
// Lifetime: the library stays loaded. Threads: any. Failure: code no_device when library, driver or device is missing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "jit/base/status.h"

namespace kiln::cuda {

using DeviceId = int;
using Address = unsigned long long;  // of the device
using ContextHandle = struct CUctx_st *;
using ModuleHandle = struct CUmod_st *;
using FunctionHandle = struct CUfunc_st *;
using StreamHandle = struct CUstream_st *;
using EventHandle = struct CUevent_st *;

struct DriverFunctions {
#define FUNCTION(name, symbol, parameters) int(*name) parameters = nullptr;
#define OPTIONAL(name, symbol, parameters) int(*name) parameters = nullptr;
#include "jit/cuda/driver.def"
#undef FUNCTION
#undef OPTIONAL
};

class Driver : public DriverFunctions {
 public:
  // Where the library is looked for: KILN_LIBCUDA in jit/base/env.def.
  static Result<std::shared_ptr<const Driver>> open();
  // Ok for 0; otherwise "[cuda] WHAT: CUDA_ERROR_...: the driver's words".
  Status check(int result, std::string_view what) const;
};

// Numbers of the API that are passed or returned.
namespace number {
inline constexpr int out_of_memory = 2, stub_library = 34, no_device = 100, invalid_device = 101, invalid_image = 200,
                     no_binary_for_device = 209, invalid_handle = 400, not_ready = 600, driver_mismatch = 803,
                     compatibility_not_supported = 804;
inline constexpr int multiprocessors = 16, compute_major = 75, compute_minor = 76, memory_pools = 115;  // of a device
inline constexpr int max_threads_per_block = 0;                                                         // of a function
inline constexpr unsigned stream_non_blocking = 1, event_disable_timing = 2;
inline constexpr uintptr_t launch_end = 0, launch_buffer = 1, launch_buffer_size = 2;  // keys of cuLaunchKernel's extra
}  // namespace number

}  // namespace kiln::cuda
