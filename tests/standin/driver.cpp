// The driver's functions that Kiln calls (jit/cuda/driver.def), standing in: each is recorded, checked, and does on the
// host's memory what it says.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/standin/driver_state.h"
#include "tests/standin/grid.h"

namespace kiln::standin {
namespace {

constexpr int ok = 0, invalid_value = 1, no_device = 100, no_binary = 209, invalid_handle = 400, not_found = 500,
              not_ready = 600, launch_failed = 719;

}  // namespace

thread_local std::vector<uint64_t> StandinDriver::current;

namespace {

StandinDriver &driver() {
  static StandinDriver instance;
  return instance;
}

// The library that `image` is, or null when it is no library of this machine. False: a cubin, which takes a GPU.
bool open_image(const void *image, Module &module) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return true;
  if (header.e_machine != EM_X86_64 || header.e_type != ET_DYN) return false;
  const size_t size = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;  // the table comes last
  const int file = memfd_create("standin-cubin", MFD_CLOEXEC);
  const bool written = file >= 0 && write(file, image, size) == static_cast<ssize_t>(size);
  if (written) module.handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module.handle) {
    module.file = file;  // open as long as the library is: another file of this number would pass for the same one
  } else if (file >= 0) {
    close(file);
  }
  return module.handle != nullptr;
}

// Outside of the lock: several streams may run kernels at once.
int run(void *library, const Record &record) {
  if (!library) return ok;
  auto *address = reinterpret_cast<void *(*)()>(dlsym(library, "kiln_shim_address"));
  auto entry = reinterpret_cast<ShimEntry>(dlsym(library, ("call_" + record.name).c_str()));
  if (!address || !entry) return not_found;
  return run_grid(address(), entry, record.parameter.data(), record.blocks, record.threads) ? ok : launch_failed;
}

template <class T>
T handle(uint64_t number) {
  return reinterpret_cast<T>(static_cast<uintptr_t>(number));
}
template <class T>
uint64_t number(T handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

}  // namespace
}  // namespace kiln::standin

using namespace kiln::standin;

#define STANDIN extern "C" __attribute__((visibility("default")))

STANDIN DriverControl *kiln_standin_driver() { return &driver(); }

STANDIN int cuInit(unsigned) {
  return driver().call({.function = "cuInit"}, [](Record &) { return driver().settings.devices ? ok : no_device; });
}
STANDIN int cuGetErrorName(int error, const char **text) {
  *text = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : error == no_device ? "CUDA_ERROR_NO_DEVICE" : nullptr;
  return *text ? ok : invalid_value;
}
STANDIN int cuGetErrorString(int error, const char **text) {
  *text = error == 2 ? "out of memory" : error == no_device ? "no CUDA-capable device is detected" : nullptr;
  return *text ? ok : invalid_value;
}
STANDIN int cuDeviceGetCount(int *count) {
  return driver().call({.function = "cuDeviceGetCount"}, [&](Record &) {
    *count = driver().settings.devices;
    return ok;
  });
}
STANDIN int cuDeviceGet(int *device, int ordinal) {
  return driver().call({.function = "cuDeviceGet"}, [&](Record &) {
    *device = ordinal;
    return ok;
  });
}
STANDIN int cuDeviceGetAttribute(int *value, int attribute, int) {
  return driver().call({.function = "cuDeviceGetAttribute"}, [&](Record &) {
    const auto &s = driver().settings;
    const std::map<int, int> known = {{75, s.major}, {76, s.minor}, {16, s.multiprocessors}, {115, s.memory_pools}};
    const auto found = known.find(attribute);
    if (found == known.end()) return invalid_value;
    *value = found->second;
    return ok;
  });
}
STANDIN int cuDevicePrimaryCtxRetain(void **context, int device) {
  return driver().call({.function = "cuDevicePrimaryCtxRetain"}, [&](Record &record) {
    record.object = driver().retain_context(device);
    *context = handle<void *>(record.object);
    return ok;
  });
}
STANDIN int cuDevicePrimaryCtxRelease_v2(int device) {
  return driver().release({.function = "cuDevicePrimaryCtxRelease_v2"},
                          [&](Record &) { return driver().release_context(device) ? ok : invalid_value; });
}
STANDIN int cuCtxPushCurrent_v2(void *context) {
  return driver().release({.function = "cuCtxPushCurrent_v2"}, [&](Record &) {
    if (driver().settings.push_error) return driver().settings.push_error;
    if (!driver().is(number(context), "context", "cuCtxPushCurrent_v2")) return invalid_value;
    StandinDriver::current.push_back(number(context));
    return ok;
  });
}
STANDIN int cuCtxPopCurrent_v2(void **context) {
  return driver().release({.function = "cuCtxPopCurrent_v2"}, [&](Record &) {
    if (!driver().in_context("cuCtxPopCurrent_v2")) return invalid_value;
    *context = handle<void *>(StandinDriver::current.back());
    StandinDriver::current.pop_back();
    return ok;
  });
}

STANDIN int cuModuleLoadData(void **module, const void *image) {
  return driver().call({.function = "cuModuleLoadData"}, [&](Record &record) {
    if (!driver().in_context("cuModuleLoadData")) return invalid_handle;
    Module loaded;
    if (!open_image(image, loaded)) return no_binary;
    record.object = driver().make("module");
    driver().modules[record.object] = loaded;
    *module = handle<void *>(record.object);
    return ok;
  });
}
STANDIN int cuModuleUnload(void *module) {
  return driver().release({.function = "cuModuleUnload", .object = number(module)}, [&](Record &record) {
    if (!driver().drop(record.object, "module", "cuModuleUnload")) return invalid_handle;
    const Module gone = driver().modules[record.object];
    if (gone.handle) dlclose(gone.handle);
    if (gone.handle) close(gone.file);
    driver().modules.erase(record.object);
    return ok;
  });
}
STANDIN int cuModuleGetFunction(void **function, void *module, const char *name) {
  return driver().call({.function = "cuModuleGetFunction", .object = number(module), .name = name},
                       [&](Record &record) {
                         if (!driver().is(record.object, "module", "cuModuleGetFunction")) return invalid_handle;
                         void *library = driver().modules[record.object].handle;
                         if (library && !dlsym(library, ("call_" + record.name).c_str())) return not_found;
                         const uint64_t made = driver().functions.size() + 1;
                         driver().functions[made] = {record.object, record.name};
                         *function = handle<void *>(made);
                         return ok;
                       });
}
STANDIN int cuFuncGetAttribute(int *value, int, void *) {
  return driver().call({.function = "cuFuncGetAttribute"}, [&](Record &) {
    *value = driver().settings.max_threads;
    return ok;
  });
}
STANDIN int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned, void *stream, void **, void **extra) {
  void *library = nullptr;
  Record launched;
  const int result = driver().call({.function = "cuLaunchKernel", .stream = number(stream)}, [&](Record &record) {
    const auto found = driver().functions.find(number(function));
    if (found == driver().functions.end() || grid_y * grid_z * block_y * block_z != 1 || !extra) return invalid_value;
    if (!driver().is(record.stream, "stream", "cuLaunchKernel")) return invalid_handle;
    if (!driver().is(found->second.module, "module", "cuLaunchKernel")) return invalid_handle;
    if (!driver().in_context("cuLaunchKernel")) return invalid_handle;
    record.name = found->second.name;
    record.blocks = grid_x;
    record.threads = block_x;
    const uint8_t *bytes = nullptr;
    size_t size = 0;
    for (; number(*extra) != 0; extra += 2) {
      if (number(extra[0]) == 1) bytes = static_cast<const uint8_t *>(extra[1]);
      if (number(extra[0]) == 2) size = *static_cast<const size_t *>(extra[1]);
    }
    record.parameter.assign(bytes, bytes + size);
    library = driver().modules[found->second.module].handle;
    launched = record;
    return ok;
  });
  return result == ok ? run(library, launched) : result;
}
STANDIN int cuStreamCreate(void **stream, unsigned) {
  return driver().call({.function = "cuStreamCreate"}, [&](Record &record) {
    if (!driver().in_context("cuStreamCreate")) return invalid_handle;
    record.stream = driver().make("stream");
    *stream = handle<void *>(record.stream);
    return ok;
  });
}
STANDIN int cuStreamDestroy_v2(void *stream) {
  return driver().release({.function = "cuStreamDestroy_v2", .stream = number(stream)}, [&](Record &record) {
    if (!driver().in_context("cuStreamDestroy_v2")) return invalid_handle;
    return driver().drop(record.stream, "stream", "cuStreamDestroy_v2") ? ok : invalid_handle;
  });
}
STANDIN int cuStreamSynchronize(void *stream) {
  return driver().call({.function = "cuStreamSynchronize", .stream = number(stream)}, [&](Record &record) {
    return driver().is(record.stream, "stream", "cuStreamSynchronize") ? ok : invalid_handle;
  });
}
STANDIN int cuStreamQuery(void *stream) {
  return driver().call({.function = "cuStreamQuery", .stream = number(stream)}, [&](Record &record) {
    if (!driver().is(record.stream, "stream", "cuStreamQuery")) return invalid_handle;
    if (driver().settings.busy == 0) return ok;
    --driver().settings.busy;
    return not_ready;
  });
}
STANDIN int cuStreamWaitEvent(void *stream, void *event, unsigned) {
  return driver().call({.function = "cuStreamWaitEvent", .stream = number(stream), .object = number(event)},
                       [&](Record &record) {
                         const bool known = driver().is(record.stream, "stream", "cuStreamWaitEvent") &&
                                            driver().is(record.object, "event", "cuStreamWaitEvent");
                         return known ? ok : invalid_handle;
                       });
}
STANDIN int cuEventCreate(void **event, unsigned) {
  return driver().call({.function = "cuEventCreate"}, [&](Record &record) {
    record.object = driver().make("event");
    *event = handle<void *>(record.object);
    return ok;
  });
}
STANDIN int cuEventRecord(void *event, void *stream) {
  return driver().call({.function = "cuEventRecord", .stream = number(stream), .object = number(event)},
                       [&](Record &record) {
                         const bool known = driver().is(record.stream, "stream", "cuEventRecord") &&
                                            driver().is(record.object, "event", "cuEventRecord");
                         return known ? ok : invalid_handle;
                       });
}
STANDIN int cuEventDestroy_v2(void *event) {
  return driver().release({.function = "cuEventDestroy_v2", .object = number(event)}, [&](Record &record) {
    return driver().drop(record.object, "event", "cuEventDestroy_v2") ? ok : invalid_handle;
  });
}

namespace {

int allocate(const char *function, void *stream, unsigned long long *address, size_t bytes) {
  return driver().call({.function = function, .stream = number(stream), .bytes = bytes}, [&](Record &record) {
    if (!driver().in_context(function) || bytes == 0) return invalid_value;
    *address = record.object = driver().allocate(bytes);
    return ok;
  });
}
int free_memory(const char *function, void *stream, unsigned long long address) {
  return driver().release({.function = function, .stream = number(stream), .object = address}, [&](Record &) {
    if (stream && !driver().is(number(stream), "stream", function)) return invalid_handle;
    return driver().in_context(function) && driver().free(address, function) ? ok : invalid_value;
  });
}
// Both ends are addresses of this process; those of the device are checked.
int copy_bytes(const char *function, void *stream, uint64_t to, bool to_device, uint64_t from, bool from_device,
               size_t bytes) {
  return driver().call({.function = function, .stream = number(stream), .object = to, .bytes = bytes}, [&](Record &) {
    if (!driver().is(number(stream), "stream", function)) return invalid_handle;
    if (to_device && !driver().holds(to, bytes, function)) return invalid_value;
    if (from_device && !driver().holds(from, bytes, function)) return invalid_value;
    std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
    return ok;
  });
}

}  // namespace

STANDIN int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
  return allocate("cuMemAlloc_v2", nullptr, address, bytes);
}
STANDIN int cuMemAllocAsync(unsigned long long *address, size_t bytes, void *stream) {
  return allocate("cuMemAllocAsync", stream, address, bytes);
}
STANDIN int cuMemFree_v2(unsigned long long address) { return free_memory("cuMemFree_v2", nullptr, address); }
STANDIN int cuMemFreeAsync(unsigned long long address, void *stream) {
  return free_memory("cuMemFreeAsync", stream, address);
}
STANDIN int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream) {
  return copy_bytes("cuMemcpyHtoDAsync_v2", stream, to, true, number(from), false, bytes);
}
STANDIN int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream) {
  return copy_bytes("cuMemcpyDtoHAsync_v2", stream, number(to), false, from, true, bytes);
}
STANDIN int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream) {
  return copy_bytes("cuMemcpyDtoDAsync_v2", stream, to, true, from, true, bytes);
}
STANDIN int cuMemsetD32Async(unsigned long long to, unsigned value, size_t count, void *stream) {
  const size_t bytes = count * sizeof value;
  return driver().call({.function = "cuMemsetD32Async", .stream = number(stream), .object = to, .bytes = bytes},
                       [&](Record &) {
                         if (!driver().holds(to, bytes, "cuMemsetD32Async")) return invalid_value;
                         for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned *>(to)[i] = value;
                         return ok;
                       });
}
