#include "jit/base/hash.h"

#include <sodium.h>
#include <xxhash.h>

#include "jit/base/hex.h"

namespace kiln {

std::string Digest::hex() const { return hex_of(bytes); }

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
