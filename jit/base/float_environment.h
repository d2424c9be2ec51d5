// The floating-point environment of x86-64, of each thread: the control bits of MXCSR (rounding, flush to zero, masked
// exceptions), and the control word of the x87 unit, which reads numbers (strtod) and computes in long double.
#pragma once
#include <xmmintrin.h>

#include <cstdint>

namespace kiln {

struct FloatEnvironment {
  uint32_t mxcsr;
  uint16_t x87;

  // To nearest, subnormal numbers kept, all bits of a long double, no exception traps.
  static constexpr FloatEnvironment standard() { return {0x1f80, 0x037f}; }
  static FloatEnvironment current() {
    FloatEnvironment now{_mm_getcsr(), 0};
    asm volatile("fnstcw %0" : "=m"(now.x87));
    return now;
  }
  void set() const {
    _mm_setcsr(mxcsr);
    asm volatile("fldcw %0" : : "m"(x87));
  }
  // MXCSR's other bits are flags: which exceptions there were.
  bool has_controls_of(const FloatEnvironment &other) const {
    return ((mxcsr ^ other.mxcsr) & 0xffc0) == 0 && x87 == other.x87;
  }
};

// For its life this thread computes in the standard environment; then the host's is back, with the flags that it had.
// It stands where the host enters Kiln, and costs a comparison where the host changed nothing.
class DefaultFloats {
 public:
  DefaultFloats() : host_(FloatEnvironment::current()) {
    if (!host_.has_controls_of(FloatEnvironment::standard())) [[unlikely]]
      enter();
  }
  DefaultFloats(const DefaultFloats &) = delete;
  DefaultFloats &operator=(const DefaultFloats &) = delete;
  ~DefaultFloats() {
    if (!host_.has_controls_of(FloatEnvironment::standard())) [[unlikely]]
      leave();
  }

 private:
  friend class HostFloats;
  void enter();
  void leave() const;

  const FloatEnvironment host_;
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
  const FloatEnvironment inside_;
  const DefaultFloats *const border_;  // null: the host's is the default, or Kiln was not entered
};

}  // namespace kiln
