#include "runtime/exec/fitting.h"

#include <optional>

#include "jit/base/target.h"

namespace kiln {

Result<size_t> choose_fitting(std::span<const ArtifactTarget> targets,
                              const std::function<Result<std::shared_ptr<Device>>(const BackendInfo &)> &open_device) {
  std::optional<size_t> best;
  std::string lacks;
  for (size_t i = 0; i < targets.size(); ++i) {
    KILN_ASSIGN(const BackendInfo *backend, find_backend(targets[i].backend));
    if (backend->on_device()) {
      const Result<std::shared_ptr<Device>> device = open_device(*backend);
      if (!device.ok()) return size_t{0};  // to be looked at; a call tells why there is none
      if (!backend->runs(targets[i].target, (*device)->arch())) {
        str_append(lacks, str_cat(lacks.empty() ? "" : "; ", "code for ", targets[i].target,
                                  " does not run on this GPU, ", (*device)->arch()));
        continue;
      }
      if (!best || backend->runs(targets[*best].target, targets[i].target)) best = i;  // this one is the later
      continue;
    }
    KILN_ASSIGN(const Target target, Target::by_name(targets[i].target));
    if (const Status fits = target.check_host(); !fits.ok()) {
      str_append(lacks, str_cat(lacks.empty() ? "" : "; ", fits.message()));
      continue;
    }
    if (!best || target.features.has(Target::by_name(targets[*best].target)->features)) best = i;
  }
  if (!best) return error(Code::incompatible, lacks);
  return *best;
}

}  // namespace kiln
