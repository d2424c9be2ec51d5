// The digest of bytes that come in parts (hash.h).
#pragma once
#include <memory>

#include "jit/base/hash.h"

namespace kiln {

class Hasher {
 public:
  Hasher();
  Hasher(const Hasher &) = delete;
  Hasher &operator=(const Hasher &) = delete;
  ~Hasher();
  void add(ByteSpan bytes);
  Digest finish();  // once

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace kiln
