// The floating-point environment of x86-64: the control bits of MXCSR (rounding, flush to zero, masked exceptions), one
// word of each thread. The x87 unit, which has a word of its own, is not used: there is no long double here.
#pragma once
#include <xmmintrin.h>

#include <cstdint>

namespace kiln {

// To nearest, subnormal numbers kept, no exception traps.
constexpr uint32_t default_float_controls = 0x1f80;
constexpr uint32_t float_control_bits = 0xffc0;  // the others are flags: which exceptions there were

inline uint32_t float_controls() { return _mm_getcsr() & float_control_bits; }
inline void set_default_float_environment() { _mm_setcsr(default_float_controls); }

// For its life this thread computes in the default environment; then the host's is back, with the flags that it had. It
// stands where the host enters Kiln, and costs a comparison where the host changed nothing.
class DefaultFloats {
 public:
  DefaultFloats() : host_(_mm_getcsr()) {
    if ((host_ & float_control_bits) != default_float_controls) [[unlikely]]
      enter();
  }
  DefaultFloats(const DefaultFloats &) = delete;
  DefaultFloats &operator=(const DefaultFloats &) = delete;
  ~DefaultFloats() {
    if ((host_ & float_control_bits) != default_float_controls) [[unlikely]]
      leave();
  }

 private:
  friend class HostFloats;
  void enter();
  void leave() const;

  const uint32_t host_;
  const DefaultFloats *outer_ = nullptr;
};

// For its life this thread computes as the host did when it entered Kiln: it stands around calls of foreign code. What
// that code changes is undone.
class HostFloats {
 public:
  HostFloats();
  HostFloats(const HostFloats &) = delete;
  HostFloats &operator=(const HostFloats &) = delete;
  ~HostFloats();

 private:
  const uint32_t inside_;
  const DefaultFloats *const border_;  // null: the host's is the default, or Kiln was not entered
};

}  // namespace kiln
