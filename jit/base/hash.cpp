#include "jit/base/hash.h"

#include <sodium.h>
#include <xxhash.h>

namespace kiln {

std::string Digest::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (uint8_t byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

Digest digest_of(ByteSpan bytes) {
  Digest digest;
  // Fails for a wrong output size only. Needs no sodium_init: that only chooses a faster implementation.
  crypto_generichash(digest.bytes.data(), digest.bytes.size(), bytes.data(), bytes.size(), nullptr, 0);
  return digest;
}

Digest digest_of(std::string_view text) {
  return digest_of(ByteSpan(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

uint64_t checksum_of(ByteSpan bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace kiln
