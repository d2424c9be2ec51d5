// Which of several artifacts of a graph, each for a target of its own, runs here.
#pragma once
#include <functional>
#include <span>

#include "runtime/backends/backend.h"
#include "runtime/cache/targets.h"
#include "runtime/exec/device.h"

namespace kiln {

// The number of the one for the most features that this processor has, or for the latest architecture that device 0
// runs, of which `open_device` may be called; where there is no such device, the first. Code incompatible: this
// processor lacks something of each, which the message names; unknown_name: of the backend.
Result<size_t> choose_fitting(std::span<const ArtifactTarget> targets,
                              const std::function<Result<std::shared_ptr<Device>>(const BackendInfo &)> &open_device);

}  // namespace kiln
