#include "jit/base/float_environment.h"

#include <utility>

namespace kiln {
namespace {

// Of the thread's innermost entry from a host in another environment, so that callbacks find it.
thread_local const DefaultFloats *entered = nullptr;

}  // namespace

void DefaultFloats::enter() {
  outer_ = std::exchange(entered, this);
  FloatEnvironment::standard().set();
}

void DefaultFloats::leave() const {
  // A flag that the x87 unit raised here would trap in a host that unmasked it. Such a host had none.
  if ((host_.x87 & 0x3f) != 0x3f) asm volatile("fnclex");
  host_.set();
  entered = outer_;
}

HostFloats::HostFloats() : inside_(FloatEnvironment::current()), border_(std::exchange(entered, nullptr)) {
  if (border_ && !border_->host_.has_controls_of(inside_)) border_->host_.set();
}

HostFloats::~HostFloats() {
  if (!FloatEnvironment::current().has_controls_of(inside_)) inside_.set();
  entered = border_;
}

}  // namespace kiln
