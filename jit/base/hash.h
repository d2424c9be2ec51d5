// BLAKE2b-256 (libsodium) for keys and digests; XXH3-64 for the checksums of file sections.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "jit/base/bytes.h"

namespace kiln {

struct Digest {
  std::array<uint8_t, 32> bytes{};
  auto operator<=>(const Digest &) const = default;
  std::string hex() const;
};
Digest digest_of(ByteSpan bytes);
Digest digest_of(std::string_view text);
uint64_t checksum_of(ByteSpan bytes);  // XXH3-64, seed 0

}  // namespace kiln
