// Names of kernels for `perf`, which reads them from /tmp/perf-PID.map. Asked for with KILN_PERF_MAP=1.
#pragma once
#include <span>
#include <string_view>

#include "runtime/exec/image_memory.h"
#include "runtime/plan/artifact.h"

namespace kiln {

// Adds one line an image: "kiln kernel 3 of <artifact>". Does nothing unless asked for; failures are ignored.
void write_perf_map(const ImageMemory &memory, std::span<const Image> images, std::string_view artifact);

}  // namespace kiln
