// A host that uses the CUDA driver itself, beside Kiln: memory and streams of its own on one of the devices. With the
// stand-in, or with a GPU's driver.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::standin {

// Everything that it made goes with it. One thread.
class DriverHost {
 public:
  explicit DriverHost(const std::string &library, int device = 0)
      : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)), device_(device) {
    if (!library_) {
      ADD_FAILURE() << dlerror();
      return;
    }
    check("cuInit", call("cuInit", 0u));
    void *context = nullptr;
    check("cuDevicePrimaryCtxRetain", call("cuDevicePrimaryCtxRetain", &context, device));
    check("cuCtxPushCurrent", call("cuCtxPushCurrent_v2", context));
  }
  DriverHost(const DriverHost &) = delete;
  ~DriverHost() {
    if (!library_) return;
    for (const unsigned long long address : memory_) check("cuMemFree", call("cuMemFree_v2", address));
    for (void *stream : streams_) check("cuStreamDestroy", call("cuStreamDestroy_v2", stream));
    void *popped = nullptr;
    check("cuCtxPopCurrent", call("cuCtxPopCurrent_v2", &popped));
    check("cuDevicePrimaryCtxRelease", call("cuDevicePrimaryCtxRelease_v2", device_));
  }

  // Device memory that holds the values.
  template <class T>
  T *array(const std::vector<T> &values) {
    unsigned long long address = 0;
    const size_t bytes = values.size() * sizeof(T);
    check("cuMemAlloc", call("cuMemAlloc_v2", &address, bytes));
    memory_.push_back(address);
    check("cuMemcpyHtoD",
          call("cuMemcpyHtoDAsync_v2", address, static_cast<const void *>(values.data()), bytes, default_stream()));
    check("cuStreamSynchronize", call("cuStreamSynchronize", default_stream()));
    return reinterpret_cast<T *>(address);
  }
  // What is there, after all that `stream` was given.
  template <class T>
  std::vector<T> values(const T *array, size_t count, uint64_t stream = 1) {
    std::vector<T> out(count);
    void *const handle = reinterpret_cast<void *>(static_cast<uintptr_t>(stream));
    check("cuMemcpyDtoH", call("cuMemcpyDtoHAsync_v2", static_cast<void *>(out.data()),
                               reinterpret_cast<unsigned long long>(array), count * sizeof(T), handle));
    check("cuStreamSynchronize", call("cuStreamSynchronize", handle));
    return out;
  }
  uint64_t stream() {
    void *made = nullptr;
    check("cuStreamCreate", call("cuStreamCreate", &made, 1u));
    streams_.push_back(made);
    return reinterpret_cast<uintptr_t>(made);
  }

 private:
  template <class... Arguments>
  int call(const char *name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    return function ? function(arguments...) : -1;
  }
  static void check(const char *name, int result) { EXPECT_EQ(result, 0) << name; }
  static void *default_stream() { return reinterpret_cast<void *>(uintptr_t{1}); }

  void *const library_;
  const int device_;
  std::vector<unsigned long long> memory_;
  std::vector<void *> streams_;
};

}  // namespace kiln::standin
