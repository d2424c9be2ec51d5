// Names of kernels for `perf`, which reads them from /tmp/perf-PID.map when the code lies in anonymous memory. Asked
// for with KILN_PERF_MAP=1.
#pragma once
#include <span>
#include <string_view>

#include "runtime/exec/image_memory.h"
#include "runtime/plan/artifact.h"

namespace kiln {

Result<bool> perf_map_wanted();  // an error: the variable's value is not understood

// Adds one line an image: "kiln kernel 3 of <artifact>". Failures are ignored: perf shows addresses then.
void write_perf_map(const ImageMemory &memory, std::span<const Image> images, std::string_view artifact);

}  // namespace kiln
