// A device that a backend's module opened, and what is made on it: the C table of jit/base/device_table.h as objects
// that close themselves. Errors: no_device when there is none (the message names what was looked for), out_of_memory,
// internal with the driver's own words.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/base/device_table.h"
#include "jit/base/status.h"
#include "runtime/plan/artifact.h"

namespace kiln {

// Threads: any.
class Device {
 public:
  static Result<std::shared_ptr<Device>> open(const kiln_device_table &table, uint32_t index);
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  ~Device() { table_.close(device_); }

  std::string arch() const { return table_.arch(device_); }
  const kiln_device_table &table() const { return table_; }
  kiln_device *handle() const { return device_; }
  uint32_t index() const { return index_; }

 private:
  Device(const kiln_device_table &table, kiln_device *device, uint32_t index)
      : table_(table), device_(device), index_(index) {}
  const kiln_device_table &table_;
  kiln_device *device_;
  const uint32_t index_;
};
// How an executable gets its device, by the index among the backend's: when it is first called, not when it is loaded.
using OpenDevice = std::function<Result<std::shared_ptr<Device>>(uint32_t index)>;

// Work in order. One thread at a time.
class DeviceQueue {
 public:
  static Result<std::shared_ptr<DeviceQueue>> open(std::shared_ptr<Device> device);
  DeviceQueue(const DeviceQueue &) = delete;
  DeviceQueue &operator=(const DeviceQueue &) = delete;
  ~DeviceQueue() { device_->table().close_queue(queue_); }

  Status copy_in(uint64_t to, const void *from, uint64_t bytes);  // `from` must stay until finish
  Status copy_out(void *to, uint64_t from, uint64_t bytes);       // likewise `to`
  Status copy(uint64_t to, uint64_t from, uint64_t bytes);
  Status launch(const kiln_device_launch &launch);
  Status follow(const DeviceQueue &first);
  // Of a stream of the host's: what is given from here on waits for what that was given, or the other way round.
  Status enter(uint64_t stream);
  Status leave(uint64_t stream);
  Result<bool> is_over();     // whether all work is; does not wait
  Result<uint32_t> finish();  // waits; KILN_ERROR_* bits of the kernels since the last finish

  const Device &device() const { return *device_; }
  kiln_device_queue *handle() const { return queue_; }

 private:
  DeviceQueue(std::shared_ptr<Device> device, kiln_device_queue *queue) : device_(std::move(device)), queue_(queue) {}
  const std::shared_ptr<Device> device_;
  kiln_device_queue *queue_;
};

// One block of the device's memory, uninitialised, aligned for any element.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::shared_ptr<DeviceQueue> queue) : queue_(std::move(queue)) {}
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  ~DeviceMemory() { release(); }

  // Makes it hold at least `bytes`; what it held is lost then. `what` is for the message: "arena".
  Status grow(uint64_t bytes, std::string_view what);
  uint64_t address() const { return address_; }
  uint64_t size_bytes() const { return size_; }

 private:
  void release();
  const std::shared_ptr<DeviceQueue> queue_;
  uint64_t address_ = 0, size_ = 0;
};

// An artifact's kernels and constants on a device. Immutable; threads: any.
class DeviceProgram {
 public:
  static Result<std::shared_ptr<const DeviceProgram>> load(std::shared_ptr<Device> device, const Artifact &artifact);
  DeviceProgram(const DeviceProgram &) = delete;
  DeviceProgram &operator=(const DeviceProgram &) = delete;
  ~DeviceProgram();

  const std::shared_ptr<Device> &device() const { return device_; }
  const kiln_device_program *handle() const { return program_; }
  std::span<const uint64_t> constants() const { return constants_; }  // addresses
  const DeviceQueue &uploads() const { return *queue_; }              // to be followed before constants are read

 private:
  explicit DeviceProgram(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Status load_kernels(std::span<const Image> images);
  Status upload_constants(std::span<const TensorData> constants);

  const std::shared_ptr<Device> device_;
  kiln_device_program *program_ = nullptr;
  std::shared_ptr<DeviceQueue> queue_;
  std::unique_ptr<DeviceMemory> memory_;
  std::vector<uint64_t> constants_;  // addresses
};

}  // namespace kiln
