// The two keys of the cache: graph_key names the artifact of a whole graph, kernel_key the image of one kernel.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/target.h"
#include "runtime/cache/artifact_bytes.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/pass.h"

namespace kiln {

// All that a graph's key covers. `graph` is what the early passes made; `late` are the passes that would run on it, in
// order.
struct KeyInputs {
  const Graph &graph;
  std::string_view options;  // those of the compile that change its artifact
  std::span<const std::shared_ptr<const Pass>> late;
  const Target &target;
  std::string_view backend, build_id;
  // Functions that the graph's nodes name, those that its ops fall back to, where some may, and registered backends:
  // "function 'f'", "fallback of 'matmul'" and "backend 'b'" with their identities.
  std::map<std::string, std::string> registered = {};
  Questions *questions = nullptr;  // for fingerprints
};

// The parts of a graph's key, in the order in which it hashes them: "graph", "ops", "options", "pass NAME" for each
// late pass, those of what is registered, "target", "backend", "build". Fails when a pass's fingerprint does. Where one
// says that nothing of the pass's can be kept, `uncacheable` gets "pass 'p' of costs: " and why.
Result<std::vector<KeyComponent>> key_components(const KeyInputs &inputs, std::string &uncacheable);
// The ops that a graph and the graphs nested in it use, by name.
std::map<std::string, const OpSchema *> ops_of(const Graph &graph);
Digest graph_key(std::span<const KeyComponent> components);

// The key of a kernel's image hashes all that decides the image: the serialised kernel, the backend whose emitter reads
// it, the name of the target, the build id, and which compiler outside of that makes the code
// (CodegenModule::compiler).
Digest kernel_key(ByteSpan kernel, std::string_view backend, const Target &target, std::string_view build_id,
                  std::string_view compiler = {});

}  // namespace kiln
