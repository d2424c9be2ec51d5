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
#include "runtime/backends/registered.h"
#include "runtime/cache/cache.h"
#include "runtime/compile_options.h"
#include "runtime/exec/executable.h"
#include "runtime/functions/function.h"
#include "runtime/graph/graph.h"
#include "runtime/modules.h"
#include "runtime/passes/pipeline.h"
#include "runtime/report/compile_report.h"

namespace kiln {

struct EntryMaker;  // entries.h
// An entry of the executable that is to be made when there is time. `turn` is held until then.
struct LaterEntry {
  std::shared_ptr<const EntryMaker> maker;
  std::shared_ptr<const Executable> executable;
  size_t number = 0;
  std::shared_ptr<void> turn;
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
  std::function<bool(std::string_view text)> warning = {};          // likewise
  std::function<void(std::function<Status()>)> in_background = {};  // publishing; empty: here and now
  std::function<void(LaterEntry)> later = {};  // may be called long after the compile; empty: entries are made at once
  std::shared_ptr<Modules> modules = std::make_shared<Modules>();
  std::shared_ptr<const FunctionTable> functions = std::make_shared<const HostFunctions>();  // nobody changes them
  std::shared_ptr<const BackendTable> backends = std::make_shared<const BackendTable>();     // likewise
  std::shared_ptr<const AttrMap> facts = std::make_shared<const AttrMap>();                  // of the host; likewise
  std::shared_ptr<FileDigests> files = std::make_shared<FileDigests>();
  PassPolicy passes_that_fail = {};
  // Whether nobody was told yet that this pass changes numerics; empty: whoever asks is the first.
  std::function<bool(const Pass &)> is_news = {};
};

struct Compiled {
  std::shared_ptr<const Executable> executable;
  std::vector<std::string> kernel_texts;  // want_ir, want_asm
};
// `report` is filled as far as the compile came, also on failure. Outcomes: HIT; MISS; REJECT: there was a record, but
// it could not be loaded, and the graph was compiled again; BYPASS: the graph's key was not used, because the cache is
// off, texts are wanted or no code is, what passes make is dumped or shown, or a late pass has no identity. Errors:
// what is wrong with graph, options, a pass or the machine; not_cached (with the report's JSON) under require_hit;
// cancelled.
Result<Compiled> compile(const CompileEnvironment &env, GraphPtr graph, const CompileOptions &options,
                         CompileReport &report);

std::string_view build_id();  // of this build: sources, compiler and flags

}  // namespace kiln
