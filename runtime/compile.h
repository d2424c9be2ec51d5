// compile(): the request path, from a graph to an executable.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/status.h"
#include "jit/base/target.h"
#include "runtime/cache/cache.h"
#include "runtime/exec/executable.h"
#include "runtime/graph/graph.h"
#include "runtime/modules.h"
#include "runtime/passes/pipeline.h"
#include "runtime/report/compile_report.h"

namespace kiln {

// strict: each 16-bit value of the graph is rounded where its op ends, and sums have one order, so that results do not
// depend on how a graph is cut, fused and scheduled. relaxed: 16-bit values that only other ops of the graph read may
// stay f32, and sums are added up as it is fastest.
enum class Rounding : uint8_t { strict, relaxed };
inline std::string_view name_of(Rounding rounding) { return rounding == Rounding::strict ? "strict" : "relaxed"; }

struct CompileOptions {
  std::string backend = "cpu";  // runtime/regions/backend.h lists them
  std::string cpu = "native";   // Target::by_name
  std::string arch = "native";  // of a backend for a device; "native": the device's own, which must be there
  bool code = true;             // false: kernels are made but not compiled; the executable can be looked at, not called
  bool use_cache = true;
  bool strict = false;                   // a bypass because of a pass is an error, or of a cache that is off
  bool require_hit = false;              // anything but HIT is an error NOT_CACHED with the report
  std::vector<std::string> passes = {};  // empty: all; else exact names of those to run
  std::vector<std::string> disable_passes = {};
  bool fuse = true;
  Rounding rounding = Rounding::strict;
  uint32_t compile_threads = 0;            // 0: one per usable core
  bool want_ir = false, want_asm = false;  // texts into the result (the cache is then not asked)
};

// What a compile needs of its context.
struct CompileEnvironment {
  const OpTable &ops;
  const PassList &passes;               // a snapshot
  Cache *cache;                         // null: off
  std::string_view cache_refusal = {};  // where the cache is null, but was asked for: why
  std::shared_ptr<ThreadPool> pool;
  // Progress: returns true to cancel. Called on the compiling thread only.
  std::function<bool(std::string_view what)> progress = {};
  std::function<void(std::function<Status()>)> in_background = {};  // publishing; empty: here and now
  std::shared_ptr<Modules> modules = std::make_shared<Modules>();
};

struct Compiled {
  std::shared_ptr<const Executable> executable;
  std::vector<std::string> kernel_texts;  // want_ir, want_asm
};
// `report` is filled as far as the compile came, also on failure. Outcomes: HIT; MISS; REJECT: there was a record, but
// it could not be loaded, and the graph was compiled again; BYPASS: the graph's key was not used, because the cache is
// off, texts are wanted or no code is, or a late pass has no identity. Errors: what is wrong with graph, options, a
// pass or the machine; not_cached (with the report's JSON) under require_hit; cancelled.
Result<Compiled> compile(const CompileEnvironment &env, GraphPtr graph, const CompileOptions &options,
                         CompileReport &report);

std::string_view build_id();  // of this build: sources, compiler and flags

}  // namespace kiln
