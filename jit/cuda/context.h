// A device's primary context: the one that all libraries of a process share.
// Lifetime: retained from open() to destruction, which is after that of all that was made in it. Threads: any.
// Failure: no_device when there is no such device.
#pragma once
#include <memory>
#include <string>

#include "jit/cuda/driver.h"

namespace kiln::cuda {

class Context {
 public:
  static Result<std::shared_ptr<const Context>> open(std::shared_ptr<const Driver> driver, uint32_t ordinal);
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
  ~Context() { (void)driver_->context_release(device_); }

  const Driver &driver() const { return *driver_; }
  ContextHandle handle() const { return handle_; }
  const std::string &arch() const { return arch_; }  // "sm_90"
  uint32_t multiprocessors() const { return multiprocessors_; }
  bool has_memory_pools() const { return has_memory_pools_; }  // memory can be allocated and freed in stream order

 private:
  Context(std::shared_ptr<const Driver> driver, DeviceId device, ContextHandle handle)
      : driver_(std::move(driver)), device_(device), handle_(handle) {}
  Status read_attributes();

  const std::shared_ptr<const Driver> driver_;
  const DeviceId device_;
  const ContextHandle handle_;
  std::string arch_;
  uint32_t multiprocessors_ = 0;
  bool has_memory_pools_ = false;
};

// Makes the context current on this thread; gives back to the thread what was current before. What the other headers
// of this folder declare is made, used and destroyed inside one.
class ContextScope {
 public:
  explicit ContextScope(const Context &context)
      : driver_(context.driver()), status_(driver_.check(driver_.context_push(context.handle()), "cuCtxPushCurrent")) {}
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  ~ContextScope() {
    ContextHandle popped = nullptr;
    if (status_.ok()) (void)driver_.context_pop(&popped);
  }
  const Status &status() const { return status_; }

 private:
  const Driver &driver_;
  const Status status_;
};

}  // namespace kiln::cuda
