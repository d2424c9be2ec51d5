#include "jit/base/float_environment.h"

#include <utility>

namespace kiln {
namespace {

// Of the thread's innermost entry from a host in another environment, so that callbacks find it.
thread_local const DefaultFloats *entered = nullptr;

}  // namespace

void DefaultFloats::enter() {
  outer_ = std::exchange(entered, this);
  set_default_float_environment();
}

void DefaultFloats::leave() const {
  _mm_setcsr(host_);
  entered = outer_;
}

HostFloats::HostFloats() : inside_(_mm_getcsr()), border_(std::exchange(entered, nullptr)) {
  if (border_) _mm_setcsr(border_->host_);
}

HostFloats::~HostFloats() {
  if (float_controls() != (inside_ & float_control_bits)) _mm_setcsr(inside_);
  entered = border_;
}

}  // namespace kiln
