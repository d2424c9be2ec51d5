#include "gpu.h"

#include <dlfcn.h>

#include <cstdlib>

namespace kiln::bench {

using cli::Failure;

template <class... Arguments>
void Gpu::call(const char *name, Arguments... arguments) const {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
  const int result = function ? function(arguments...) : -1;
  if (result != 0) throw Failure(std::string(name) + " gave " + std::to_string(result));
}

Gpu::Gpu() {
  const char *const named = std::getenv("KILN_LIBCUDA");
  library_ = dlopen(named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw Skipped("no driver of a GPU");
  const auto initialize = reinterpret_cast<int (*)(unsigned)>(dlsym(library_, "cuInit"));
  if (!initialize || initialize(0) != 0) throw Skipped("no GPU");
  void *context = nullptr;
  call("cuDevicePrimaryCtxRetain", &context, 0);
  call("cuCtxPushCurrent_v2", context);
}

Gpu::~Gpu() {
  for (const unsigned long long address : memory_) call("cuMemFree_v2", address);
  void *popped = nullptr;
  call("cuCtxPopCurrent_v2", &popped);
  call("cuDevicePrimaryCtxRelease_v2", 0);
}

unsigned long long Gpu::allocate(size_t bytes) {
  unsigned long long address = 0;
  call("cuMemAlloc_v2", &address, bytes);
  memory_.push_back(address);
  return address;
}

const DLTensor *Gpu::array(std::vector<int64_t> shape, std::span<const float> values) {
  const unsigned long long address = allocate(values.size_bytes());
  call("cuMemcpyHtoD_v2", address, static_cast<const void *>(values.data()), values.size_bytes());
  Array &made = *arrays_.emplace_back(std::make_unique<Array>());
  made.shape = std::move(shape);
  made.tensor = {};
  made.tensor.data = reinterpret_cast<void *>(address);
  made.tensor.device = {kDLCUDA, 0};
  made.tensor.ndim = static_cast<int32_t>(made.shape.size());
  made.tensor.dtype = {kDLFloat, 32, 1};
  made.tensor.shape = made.shape.data();
  return &made.tensor;
}

std::vector<float> Gpu::values(const DLTensor *array) const {
  std::vector<float> values(elements_of({array->shape, static_cast<size_t>(array->ndim)}));
  call("cuMemcpyDtoH_v2", static_cast<void *>(values.data()), reinterpret_cast<unsigned long long>(array->data),
       values.size() * sizeof(float));
  return values;
}

double Gpu::copy_seconds(size_t bytes) {
  const unsigned long long from = allocate(bytes), to = allocate(bytes);
  return fastest(20, [&] {
    call("cuMemcpyDtoD_v2", to, from, bytes);
    call("cuCtxSynchronize");
  });
}

}  // namespace kiln::bench
