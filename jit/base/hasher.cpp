#include "jit/base/hasher.h"

#include <sodium.h>

namespace kiln {

struct Hasher::State {
  crypto_generichash_state of;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  crypto_generichash_init(&state_->of, nullptr, 0, sizeof(Digest::bytes));
}

Hasher::~Hasher() = default;

void Hasher::add(ByteSpan bytes) { crypto_generichash_update(&state_->of, bytes.data(), bytes.size()); }

Digest Hasher::finish() {
  Digest digest;
  crypto_generichash_final(&state_->of, digest.bytes.data(), digest.bytes.size());
  return digest;
}

}  // namespace kiln
