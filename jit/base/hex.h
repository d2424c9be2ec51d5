// Bytes as people read them: two lower-case digits a byte.
#pragma once
#include <string>

#include "jit/base/bytes.h"

namespace kiln {

inline std::string hex_of(ByteSpan bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

}  // namespace kiln
