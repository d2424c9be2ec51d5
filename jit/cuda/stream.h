// A stream: work that the device does in the order in which it was given.
// Lifetime: made and destroyed inside a ContextScope; destruction lets work that was given run to its end. Threads: one
// at a time. Failure: the driver's; a fault of a kernel shows at a later call.
#pragma once
#include <utility>

#include "jit/cuda/driver.h"

namespace kiln::cuda {

class Stream {
 public:
  static Result<Stream> create(const Driver &driver) {
    StreamHandle handle = nullptr;
    KILN_TRY(driver.check(driver.stream_create(&handle, number::stream_non_blocking), "cuStreamCreate"));
    return Stream(driver, handle);
  }
  Stream(Stream &&other) noexcept : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  Stream &operator=(Stream &&) = delete;
  ~Stream() {
    if (handle_) (void)driver_->stream_destroy(handle_);
  }

  StreamHandle handle() const { return handle_; }
  Status synchronize() const { return driver_->check(driver_->stream_synchronize(handle_), "cuStreamSynchronize"); }

 private:
  Stream(const Driver &driver, StreamHandle handle) : driver_(&driver), handle_(handle) {}
  const Driver *driver_;
  StreamHandle handle_;
};

}  // namespace kiln::cuda
