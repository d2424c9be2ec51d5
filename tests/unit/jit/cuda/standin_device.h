// A device under test, through the module's table: the stand-in, or what is there.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "jit/cuda/device_functions.h"
#include "jit/cuda/nvrtc.h"
#include "jit/cuda/source.h"
#include "tests/standin/standin.h"

namespace kiln::cuda::testing {

// The first error of a sequence of calls of the table: after it, the others do nothing.
class Checked {
 public:
  template <class Function, class... Arguments>
  void operator()(Function function, Arguments... arguments) {
    if (!status.ok()) return;
    kiln_device_error error{};
    if (function(arguments..., &error) != 0) status = Status(static_cast<Code>(error.code), error.message);
  }
  Status status;
};

template <class T>
struct Close {
  void (*close)(T *);
  void operator()(T *handle) const { close(handle); }
};
template <class T>
using Owned = std::unique_ptr<T, Close<T>>;

inline Owned<kiln_device> open_device(Checked &check) {
  kiln_device *device = nullptr;
  check(device_table.open, 0u, &device);
  return {device, {device_table.close}};
}
inline Owned<kiln_device_queue> open_queue(Checked &check, kiln_device *device) {
  kiln_device_queue *queue = nullptr;
  check(device_table.open_queue, device, &queue);
  return {queue, {device_table.close_queue}};
}
inline Owned<kiln_device_program> load(Checked &check, kiln_device *device,
                                       const std::vector<kiln_device_kernel> &kernels) {
  kiln_device_program *program = nullptr;
  check(device_table.load, device, kernels.data(), uint64_t{kernels.size()}, &program);
  return {program, {device_table.unload}};
}

// Device memory with the bytes of a host array.
class DeviceArray {
 public:
  DeviceArray(Checked &check, kiln_device_queue *queue, uint64_t bytes) : queue_(queue), bytes_(bytes) {
    check(device_table.allocate, queue, bytes, &address_);
  }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;
  ~DeviceArray() {
    if (address_) device_table.free(queue_, address_);
  }
  void copy_in(Checked &check, const void *from) { check(device_table.copy_in, queue_, address_, from, bytes_); }
  void copy_out(Checked &check, void *to) { check(device_table.copy_out, queue_, to, address_, bytes_); }
  uint64_t address() const { return address_; }

 private:
  kiln_device_queue *queue_;
  uint64_t bytes_, address_ = 0;
};

}  // namespace kiln::cuda::testing
