// What compiles share: ops, passes, plugins, cache, thread pool, background saves, and the host's event sink.
// Threads: all methods from any thread. Callbacks run with no lock held.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/status.h"
#include "runtime/background.h"
#include "runtime/cache/cache.h"
#include "runtime/compile.h"
#include "runtime/context_ops.h"
#include "runtime/context_options.h"
#include "runtime/dim_table.h"
#include "runtime/exec/prepare_parts.h"
#include "runtime/exec/tell_host.h"
#include "runtime/exec/thread_pool.h"
#include "runtime/functions/function.h"
#include "runtime/passes/pipeline.h"
#include "runtime/unpacked/unpacked.h"

namespace kiln {

// Destroyed when the context is closed.
struct EventSink {
  TellHost tell;
  uint32_t kinds = all_events;  // those that it wants

  bool operator()(Event event, std::string_view text) const {
    return kinds >> static_cast<uint32_t>(event) & 1 && tell(event, text);
  }
};

// What was made from a context and still lives; kept by the handles, told by the report.
struct LiveCounts {
  std::atomic<int64_t> graphs{0}, edits{0}, executables{0}, calls{0};
  int64_t total() const { return graphs + edits + executables + calls; }
};

// A plugin that was loaded into a context, as reports tell it. `keep` goes when the context is closed.
struct LoadedPlugin {
  std::string path, name;
  Digest digest;
  std::shared_ptr<void> keep;
};

// Of a context's compiles, as kiln_context_report tells them.
struct CompileCounts {
  uint64_t hits = 0, misses = 0, bypasses = 0, rejects = 0;  // by how their lookups ended
  uint64_t failed = 0;                                       // those that made no executable; counted nowhere else
  uint64_t kernels_compiled = 0, kernels_from_cache = 0;
  void add(const CompileReport &report);
};

// Of the registered passes that compiles ran, as it tells them, too: each is counted once a compile, or once a piece of
// it. What failed and was skipped is counted in both.
struct PassCounts {
  uint64_t rewrote = 0, unchanged = 0;
  uint64_t threw = 0, errors = 0, over_budget = 0, not_done = 0, invariants = 0;  // those that failed, by how
  uint64_t skipped = 0;
  void add(const CompileReport &report);
  void add(const PassRun &run);
};

class Context : public std::enable_shared_from_this<Context> {
 public:
  Context(const ContextOptions &options, std::optional<EventSink> sink);
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
  ~Context() { (void)let_go(); }

  ContextOps &ops() { return ops_; }
  const ContextOps &ops() const { return ops_; }
  DimTable &dims() { return dims_; }
  const std::shared_ptr<ThreadPool> &pool() const { return pool_; }
  const std::shared_ptr<Modules> &modules() { return modules_; }
  Cache *cache() { return cache_.get(); }  // null: off
  const std::string &cache_refusal() const { return refusal_; }
  LiveCounts &live() { return live_; }

  // All passes or none; gives each its id (written to `ids`, if given). See PassList::add for what is refused.
  Status add_passes(const std::vector<std::shared_ptr<Pass>> &passes, std::vector<uint64_t> *ids = nullptr);
  // What a plugin registered, and the plugin into the list that the report tells: all or nothing.
  Status add_plugin(LoadedPlugin plugin, const std::vector<std::shared_ptr<Pass>> &passes,
                    std::vector<std::unique_ptr<RegisteredOp>> ops, const std::vector<FunctionPtr> &functions = {},
                    const std::vector<BackendPtr> &backends = {});
  // Ops of the host's. They stay as long as the context and all that was made in it.
  Status add_op(std::unique_ptr<RegisteredOp> op);
  // Functions of the host, and ops that fall back to them (HostFunctions says what is refused); each gets its id.
  // Compiles that have begun, and executables, keep what they use.
  Result<uint64_t> add_function(FunctionPtr function);
  Status remove_function(uint64_t id);
  Result<uint64_t> add_fallback(std::string_view op, std::string_view function);
  Status remove_fallback(uint64_t id);
  std::shared_ptr<const HostFunctions> functions() const;  // a snapshot
  // Backends of the host, likewise.
  Result<uint64_t> add_backend(BackendPtr backend);
  Status remove_backend(uint64_t id);
  std::shared_ptr<const BackendTable> backends() const;  // a snapshot
  // Whether the option load_symbols lets functions be taken of this file.
  bool lets_load(std::string_view library) const;

  // What passes of compiles that begin from now on may ask for, "host.rank"; none: it is no more.
  Status set_fact(std::string name, std::optional<AttrValue> value);
  std::shared_ptr<const AttrMap> facts() const;  // a snapshot

  // Compiles that have begun keep the pass.
  Status remove_pass(uint64_t id);
  PassList passes() const;  // a snapshot

  // Where calls look for, and keep, what they prepare of parameters. It speaks of the context: calls keep that alive.
  PreparedParts::Store prepared_store();

  // What runs tell the host by; empty: it wants to hear nothing of them. A closed context tells nobody.
  TellHost tell_of_runs();

  Result<Compiled> compile(GraphPtr graph, const CompileOptions &options, CompileReport &report);
  // What it would run, in order; JSON, kiln_compile_passes documents it.
  Result<std::string> compile_order(const Graph &graph, const CompileOptions &options);
  // How near the graph comes to a pass's patterns; JSON, kiln_pass_explain documents it.
  Result<std::string> explain_pass(GraphPtr graph, const CompileOptions &options, std::string_view name);

  // What an unpacked artifact is where members of it were edited (runtime/edited.h).
  Result<Artifact> make_edited(const Unpacked &unpacked);
  // Tells the host. Code cancelled: it does not go on.
  Status warn(std::string_view text);

  // A callback that ends what a plugin or the host gave has thrown: told as a warning by the next compile, or by close.
  void add_end_failure(std::string text);
  // Waits for saves, and until what runs have mapped was verified; lets go of passes and sink. The error tells of
  // damage, saves and ends that failed; closed it is all the same.
  Status close();
  // The same, but verifies nothing more, and tells nothing; false: it was closed. A destructor may not run out of
  // memory.
  bool let_go() noexcept;

  std::string report() const;  // JSON; kiln_context_report documents it

 private:
  Status tell_damage();  // of prepared parameters, on the thread of a call
  std::vector<std::string> take_damage();
  Status add_locked(const std::vector<std::shared_ptr<Pass>> &passes, std::vector<uint64_t> *ids,
                    std::vector<std::unique_ptr<RegisteredOp>> ops, const std::vector<FunctionPtr> &functions = {},
                    const std::vector<BackendPtr> &backends = {});
  std::string failed_saves() const;
  std::vector<std::string> take_warnings_locked();  // each is given once
  // What compiles and entries made later share. `passes` outlives it.
  CompileEnvironment environment(const PassList &passes);
  void make_later(LaterEntry entry);
  // Makes the table anew, by what `change` does to a copy.
  template <class Table>
  Status change(std::shared_ptr<const Table> &table, const std::function<Status(Table &)> &change);

  const std::shared_ptr<ThreadPool> pool_;
  const std::shared_ptr<Modules> modules_ = std::make_shared<Modules>();
  std::unique_ptr<Cache> cache_;  // made before background_, whose tasks use it: see AtFork
  const std::vector<std::string> load_symbols_;
  const PassPolicy passes_that_fail_;
  const std::shared_ptr<FileDigests> files_ = std::make_shared<FileDigests>();
  std::string refusal_;  // why there is none, although one was asked for; empty: there is, or none was
  DimTable dims_;
  LiveCounts live_;
  const bool keeps_prepared_;
  std::atomic<bool> stopping_ = false;  // what need not be finished is not
  Background background_;

  mutable std::mutex mutex_;  // of all below
  bool closing_ = false;      // what is asked for now is not made
  bool closed_ = false;
  uint64_t next_pass_id_ = 1, next_function_id_ = 1, next_backend_id_ = 1;
  uint64_t told_failures_ = 0;     // how many failed saves the last warning counted
  bool told_refusal_ = false;      // of the cache: the warning was sent
  uint64_t next_untold_pass_ = 0;  // passes from here on were not looked at for warnings
  PassList passes_ = PassList::built_in();
  std::vector<LoadedPlugin> plugins_;
  const std::shared_ptr<const HostFunctions> no_functions_ = std::make_shared<const HostFunctions>();
  std::shared_ptr<const HostFunctions> functions_ = no_functions_;
  const std::shared_ptr<const BackendTable> no_backends_ = std::make_shared<const BackendTable>();
  std::shared_ptr<const BackendTable> backends_ = no_backends_;
  std::shared_ptr<const AttrMap> facts_ = std::make_shared<const AttrMap>();
  std::set<uint64_t> told_numerics_;                                 // passes that a warning was sent of
  std::vector<std::string> entry_failures_, end_failures_, damage_;  // not told yet
  CompileCounts compiles_;
  PassCounts passes_run_;
  std::shared_ptr<const EventSink> sink_;
  ContextOps ops_;  // the last member: what ends with it may tell of a failure
};

}  // namespace kiln
