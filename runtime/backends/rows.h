// The rows of all backends; backend.cpp lists them.
#pragma once
#include "runtime/backends/backend.h"

namespace kiln {

extern const BackendInfo cpu_backend, cuda_backend, reference_backend;
extern const BackendInfo skeleton_backend;  // in no list: to be copied, and for tests

}  // namespace kiln
