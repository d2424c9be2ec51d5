// What code is generated for: the feature level, or a device's architecture, and what scheduling reads of the machine.
// All of it is in the keys of graphs, its name in those of kernels (runtime/cache/key.h).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "jit/base/bytes.h"
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
  uint32_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;  // per core
  uint32_t cores = 1;
  std::string arch;  // device: its backend's name of the architecture; the figures above are 0 then

  bool on_device() const { return level == Level::device; }
  uint32_t vector_bytes() const { return on_device() ? 4 : level == Level::v4 ? 64 : level == Level::v3 ? 32 : 16; }
  uint32_t lanes_f32() const { return vector_bytes() / 4; }
  std::string name() const;  // "x86-64", "v3", "v4"; `arch`
  void serialize(ByteWriter &out) const;

  static Target host();  // this machine's best
  static Target device(std::string_view arch);
  // "native", "x86-64", "v3" (or "avx2"), "v4" (or "avx512"); cache sizes and cores are the host's.
  static Result<Target> by_name(std::string_view name);
  bool runs_on_host() const;
};

}  // namespace kiln
