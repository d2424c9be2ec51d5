// Code for NVIDIA's GPUs, by NVRTC; the driver runs it.
#include <charconv>

#include "jit/base/codegen.h"
#include "runtime/backends/rows.h"

namespace kiln {
namespace {

// An 'a' or 'f' at the end stands for features that later architectures do not have.
constexpr std::string_view archs[] = {"sm_75",   "sm_80",  "sm_86",   "sm_87",   "sm_89",  "sm_90",
                                      "sm_90a",  "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a",
                                      "sm_103f", "sm_110", "sm_110a", "sm_110f", "sm_120", "sm_120a",
                                      "sm_120f", "sm_121", "sm_121a", "sm_121f"};
// Of "sm_103a" 103.
int number_of(std::string_view arch) {
  int number = 0;
  if (arch.starts_with("sm_")) std::from_chars(arch.data() + 3, arch.data() + arch.size(), number);
  return number;
}

// Machine code runs on its own major version from its own minor one on; with features of one architecture, there alone.
bool runs_on(std::string_view code, std::string_view device) {
  const int of_code = number_of(code), of_device = number_of(device);
  if (code.ends_with('a')) return of_code == of_device;
  return of_code != 0 && of_code / 10 == of_device / 10 && of_code <= of_device;
}

constexpr BackendInfo::Listing cuda_listings[] = {{"cuda", KILN_CODEGEN_SOURCE | KILN_CODEGEN_TEXT_ONLY, "//"}};

}  // namespace

constexpr BackendInfo cuda_backend{.name = "cuda",
                                   .module = "libkiln_cuda.so",
                                   .archs = archs,
                                   .runs_on = runs_on,
                                   .device_type = 2,
                                   .listings = cuda_listings,
                                   .compiles_outside = true,
                                   .refuses = refuse_kept_composites};

}  // namespace kiln
