// The oracle: reference kernels run graphs as they were given.
#include "runtime/backends/rows.h"

namespace kiln {

constexpr BackendInfo reference_backend{.name = "reference"};

}  // namespace kiln
