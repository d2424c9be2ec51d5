// What code is generated for: the feature level, or a device's architecture. Its name says all of it, and is in the
// keys of graphs and kernels (runtime/cache/key.h); nothing else of a machine changes what is compiled.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "jit/base/status.h"

namespace kiln {

struct Target {
  enum class Level : uint8_t {
    x86_64 = 1,   // plain
    v3 = 3,       // AVX2+FMA+BMI2+F16C
    v4 = 4,       // AVX-512 F/BW/CD/DQ/VL
    device = 64,  // not this processor: `arch` says what. Scalar code, each point of the parallel axes a task
  };
  Level level = Level::x86_64;
  std::string arch;  // device: its backend's name of the architecture

  bool on_device() const { return level == Level::device; }
  uint32_t vector_bytes() const { return on_device() ? 4 : level == Level::v4 ? 64 : level == Level::v3 ? 32 : 16; }
  uint32_t lanes_f32() const { return vector_bytes() / 4; }
  std::string name() const;  // "x86-64", "v3", "v4"; `arch`

  static Target host();  // this machine's best
  static Target device(std::string_view arch);
  // "native", "x86-64", "v3" (or "avx2"), "v4" (or "avx512").
  static Result<Target> by_name(std::string_view name);
  bool runs_on_host() const;
};

}  // namespace kiln
