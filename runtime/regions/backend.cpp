#include "runtime/regions/backend.h"

#include <algorithm>

namespace kiln {
namespace {

// An 'a' or 'f' at the end stands for features that later architectures do not have.
constexpr std::string_view nvidia_archs[] = {"sm_75",   "sm_80",  "sm_86",   "sm_87",   "sm_89",  "sm_90",
                                             "sm_90a",  "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a",
                                             "sm_103f", "sm_110", "sm_110a", "sm_110f", "sm_120", "sm_120a",
                                             "sm_120f", "sm_121", "sm_121a", "sm_121f"};

constexpr BackendInfo table[] = {
    {"cpu", "libkiln_llvm.so", {}},
    {"cuda", "libkiln_cuda.so", nvidia_archs},
    {"reference", "", {}},
};

}  // namespace

std::span<const BackendInfo> backends() { return table; }

Result<const BackendInfo *> find_backend(std::string_view name) {
  for (const BackendInfo &backend : table)
    if (backend.name == name) return &backend;
  return error(Code::unknown_name, "backend '", name, "' is not known; there are ",
               join(table, ", ", [](const BackendInfo &b) { return b.name; }));
}

Result<Target> target_of(const BackendInfo &backend, std::string_view cpu, std::string_view arch) {
  if (!backend.on_device()) {
    if (arch != "native")
      return invalid("option 'arch' is '", arch, "', but backend ", backend.name, " runs on this processor: use 'cpu'");
    if (cpu != "native" && backend.module.empty())
      return invalid("option 'cpu' is '", cpu, "', but backend ", backend.name, " generates no code");
    return Target::by_name(cpu);
  }
  if (cpu != "native")
    return invalid("option 'cpu' is '", cpu, "', but backend ", backend.name, " runs on a device: use 'arch'");
  if (arch == "native") return Target::device("");
  if (std::ranges::find(backend.archs, arch) == backend.archs.end())
    return error(Code::unknown_name, "arch '", arch, "' of backend ", backend.name, " is not known; there are native, ",
                 join(backend.archs, ", ", [](std::string_view a) { return a; }));
  return Target::device(arch);
}

}  // namespace kiln
