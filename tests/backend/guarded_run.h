// Compiles a graph and makes its calls, in memory where stray accesses are seen.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "tests/guarded_bytes.h"

namespace kiln::testing {

using SymbolSizes = std::map<std::string, int64_t>;
using Results = std::vector<TensorData>;  // of one call: outputs, then the inputs that copy_ writes

struct GraphCall {
  SymbolSizes sizes;
  std::vector<TensorData> arguments;  // inputs, then parameters
};

// How calls are made: by how many threads, and on which side of arrays, arena and scratch the guards are flush.
struct Setting {
  uint32_t threads = 1;
  GuardedBytes::Place place = GuardedBytes::Place::end;
};
inline constexpr uint32_t most_threads = 3;
std::vector<Setting> all_settings();  // 1 to most_threads, each at both sides

// The results of each call, of one compilation. All calls are made in each setting in turn; an error if their results
// are not the same bits, if a byte beside an array is written, or one of an input that the graph only reads, or, with
// want_ir, if a kernel's IR accesses memory in a form that its level does not have. A parameter without symbols is the
// same in all calls. Without `passes`: the built-in ones.
Result<std::vector<Results>> run_guarded(const GraphPtr &graph, std::span<const GraphCall> calls,
                                         const CompileOptions &options, std::span<const Setting> settings,
                                         Cache *cache = nullptr, const PassList *passes = nullptr);

// The results of each call of an executable, with arrays, arena and scratch flush against guards at that place.
Result<std::vector<Results>> make_calls(std::shared_ptr<const Executable> executable, const Graph &graph,
                                        std::span<const GraphCall> calls, GuardedBytes::Place place);

}  // namespace kiln::testing
