// Bytes as people read them: two lower-case digits a byte.
#pragma once
#include <string>

#include "jit/base/bytes.h"

namespace kiln {

inline std::string hex_of(ByteSpan bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out(2 * bytes.size(), '0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    out[2 * i] = digits[bytes[i] >> 4];
    out[2 * i + 1] = digits[bytes[i] & 15];
  }
  return out;
}

}  // namespace kiln
