// Keys: K1 names what a compile makes, K2 the image of one kernel.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/target.h"
#include "runtime/cache/artifact.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/pass.h"

namespace kiln {

// An option that can change what is compiled, by name. Options that are not listed in a key cannot: those that choose
// how to look up (use_cache, strict, require_hit), how fast to compile (compile_threads) and what to show (want_ir,
// want_asm).
struct KeyOption {
  std::string name, value;
};

// All that K1 covers. `graph` is what the early passes made; `late` are the passes that would run on it, in order.
struct KeyInputs {
  const Graph &graph;
  std::span<const KeyOption> options;
  std::span<const std::shared_ptr<const Pass>> late;
  const Target &target;
  std::string_view backend, build_id;
};

// The components, in the order in which K1 is hashed over them: "graph", "ops", "options", "pass NAME" for each late
// pass, "target", "backend", "build". Fails when a pass's fingerprint does.
Result<std::vector<KeyComponent>> key_components(const KeyInputs &inputs);
Digest key_of(std::span<const KeyComponent> components);  // K1

// K2: the bytes that the emitter reads, whose emitter it is, what it emits for, and which build of it does.
Digest kernel_key(ByteSpan kernel, std::string_view backend, const Target &target, std::string_view build_id);

}  // namespace kiln
