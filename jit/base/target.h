// What code is generated for: the feature level, and what scheduling reads of the machine. All of it is in K1 and K2.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "jit/base/bytes.h"
#include "jit/base/status.h"

namespace kiln {

struct Target {
  enum class Level : uint8_t { x86_64 = 1, v3 = 3, v4 = 4 };  // plain; AVX2+FMA+BMI2+F16C; AVX-512 F/BW/CD/DQ/VL
  Level level = Level::x86_64;
  uint32_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;  // per core
  uint32_t cores = 1;

  uint32_t vector_bytes() const { return level == Level::v4 ? 64 : level == Level::v3 ? 32 : 16; }
  uint32_t lanes_f32() const { return vector_bytes() / 4; }
  std::string name() const;  // "x86-64", "v3", "v4"
  void serialize(ByteWriter &out) const;

  static Target host();  // this machine's best
  // "native", "x86-64", "v3" (or "avx2"), "v4" (or "avx512"); cache sizes and cores are the host's.
  static Result<Target> by_name(std::string_view name);
  bool runs_on_host() const;
};

}  // namespace kiln
