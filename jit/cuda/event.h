// An event: a point in a stream that another stream can wait for.
// Lifetime: made and destroyed inside a ContextScope; streams that were told to wait for it do so even when it is gone.
// Threads: one at a time. Failure: the driver's.
#pragma once
#include <utility>

#include "jit/cuda/stream.h"

namespace kiln::cuda {

class Event {
 public:
  static Result<Event> create(const Driver &driver) {
    EventHandle handle = nullptr;
    KILN_TRY(driver.check(driver.event_create(&handle, number::event_disable_timing), "cuEventCreate"));
    return Event(driver, handle);
  }
  Event(Event &&other) noexcept : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  Event &operator=(Event &&) = delete;
  ~Event() {
    if (handle_) (void)driver_->event_destroy(handle_);
  }

  // The point after all that `stream` was given so far.
  Status record(StreamHandle stream) const {
    return driver_->check(driver_->event_record(handle_, stream), "cuEventRecord");
  }
  Status hold_back(StreamHandle stream) const {
    return driver_->check(driver_->stream_wait_event(stream, handle_, 0), "cuStreamWaitEvent");
  }

 private:
  Event(const Driver &driver, EventHandle handle) : driver_(&driver), handle_(handle) {}
  const Driver *driver_;
  EventHandle handle_;
};

}  // namespace kiln::cuda
