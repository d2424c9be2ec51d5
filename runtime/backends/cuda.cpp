// Code for NVIDIA's GPUs, by NVRTC; the driver runs it.
#include "jit/base/codegen.h"
#include "runtime/backends/rows.h"

namespace kiln {
namespace {

// An 'a' or 'f' at the end stands for features that later architectures do not have.
constexpr std::string_view archs[] = {"sm_75",   "sm_80",  "sm_86",   "sm_87",   "sm_89",  "sm_90",
                                      "sm_90a",  "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a",
                                      "sm_103f", "sm_110", "sm_110a", "sm_110f", "sm_120", "sm_120a",
                                      "sm_120f", "sm_121", "sm_121a", "sm_121f"};
constexpr BackendInfo::Listing listings[] = {{"cuda", KILN_CODEGEN_SOURCE | KILN_CODEGEN_TEXT_ONLY, "//"}};

}  // namespace

constexpr BackendInfo cuda_backend{.name = "cuda",
                                   .module = "libkiln_cuda.so",
                                   .archs = archs,
                                   .device_type = 2,
                                   .listings = listings,
                                   .compiles_outside = true,
                                   .refuses = refuse_kept_composites};

}  // namespace kiln
