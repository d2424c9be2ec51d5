#include "runtime/context.h"

#include <algorithm>

#include "runtime/compile_explain.h"
#include "runtime/compile_order.h"
#include "runtime/compile_page.h"
#include "runtime/edited.h"
#include "runtime/entries.h"

namespace kiln {

Context::Context(const ContextOptions &options, std::optional<EventSink> sink)
    : pool_(std::make_shared<ThreadPool>(options.threads)),
      cache_(options.cache == "off"
                 ? nullptr
                 : std::make_unique<Cache>(options.cache, options.cache_max_bytes, options.prepared_max_bytes)),
      load_symbols_(options.load_symbols),
      passes_that_fail_{options.pass_failures == PassFailures::skip, options.pass_budget_ms},
      keeps_prepared_(options.prepared),
      sink_(sink ? std::make_shared<const EventSink>(*std::move(sink)) : nullptr) {
  if (!cache_) return;
  refusal_ = cache_->refusal();
  // The environment turns it off, or names no folder, or one whose records others may have written.
  if (cache_->dir().empty() || !refusal_.empty()) cache_.reset();
}

Status Context::add_passes(const std::vector<std::shared_ptr<Pass>> &passes, std::vector<uint64_t> *ids) {
  std::lock_guard lock(mutex_);
  return add_locked(passes, ids, {});
}

Status Context::add_locked(const std::vector<std::shared_ptr<Pass>> &passes, std::vector<uint64_t> *ids,
                           std::vector<std::unique_ptr<RegisteredOp>> ops, const std::vector<FunctionPtr> &functions,
                           const std::vector<BackendPtr> &backends) {
  if (closed_) return invalid("the context is closed");
  PassList next = passes_;
  uint64_t id = next_pass_id_;
  for (const std::shared_ptr<Pass> &pass : passes) {
    pass->registration = id++;
    KILN_TRY(next.add(pass));
  }
  if (ids)
    for (uint64_t i = next_pass_id_; i < id; i++) ids->push_back(i);
  std::shared_ptr<const HostFunctions> next_functions = functions_;
  if (!functions.empty()) {
    auto more = std::make_shared<HostFunctions>(*functions_);
    for (const FunctionPtr &function : functions) KILN_TRY(more->add(next_function_id_++, function));
    next_functions = std::move(more);
  }
  std::shared_ptr<const BackendTable> next_backends = backends_;
  if (!backends.empty()) {
    auto more = std::make_shared<BackendTable>(*backends_);
    for (const BackendPtr &backend : backends) KILN_TRY(more->add(next_backend_id_++, backend));
    next_backends = std::move(more);
  }
  KILN_TRY(ops_.add(std::move(ops)));
  backends_ = std::move(next_backends);
  functions_ = std::move(next_functions);  // a copy, in which all are that were there
  passes_ = std::move(next);
  next_pass_id_ = id;
  return {};
}

Status Context::add_plugin(LoadedPlugin plugin, const std::vector<std::shared_ptr<Pass>> &passes,
                           std::vector<std::unique_ptr<RegisteredOp>> ops, const std::vector<FunctionPtr> &functions,
                           const std::vector<BackendPtr> &backends) {
  std::lock_guard lock(mutex_);
  plugins_.reserve(plugins_.size() + 1);  // so that nothing can fail after the passes are in
  KILN_TRY(add_locked(passes, nullptr, std::move(ops), functions, backends));
  plugins_.push_back(std::move(plugin));
  return {};
}

Status Context::add_op(std::unique_ptr<RegisteredOp> op) {
  std::vector<std::unique_ptr<RegisteredOp>> one;
  one.push_back(std::move(op));
  std::lock_guard lock(mutex_);
  return add_locked({}, nullptr, std::move(one));
}

Status Context::remove_pass(uint64_t id) {
  PassList removed_from;  // destroyed after the lock is given up: the last copy of a pass runs the host's destroy
  std::lock_guard lock(mutex_);
  removed_from = passes_;
  return passes_.remove(id);
}

template <class Table>
Status Context::change(std::shared_ptr<const Table> &table, const std::function<Status(Table &)> &change) {
  std::shared_ptr<const Table> before;  // as in remove_pass: the last copy of what is in it runs its destroy
  std::lock_guard lock(mutex_);
  if (closed_) return invalid("the context is closed");
  auto next = std::make_shared<Table>(*table);
  KILN_TRY(change(*next));
  before = std::exchange(table, std::move(next));
  return {};
}

Result<uint64_t> Context::add_function(FunctionPtr function) {
  uint64_t id = 0;
  KILN_TRY(change<HostFunctions>(functions_, [&](HostFunctions &functions) {
    id = next_function_id_++;
    return functions.add(id, std::move(function));
  }));
  return id;
}

Status Context::remove_function(uint64_t id) {
  return change<HostFunctions>(functions_, [id](HostFunctions &functions) { return functions.remove(id); });
}

Result<uint64_t> Context::add_fallback(std::string_view op, std::string_view function) {
  uint64_t id = 0;
  KILN_TRY(change<HostFunctions>(functions_, [&](HostFunctions &functions) {
    id = next_function_id_++;
    return functions.add_fallback(id, op, function);
  }));
  return id;
}

Status Context::remove_fallback(uint64_t id) {
  return change<HostFunctions>(functions_, [id](HostFunctions &functions) { return functions.remove_fallback(id); });
}

std::shared_ptr<const HostFunctions> Context::functions() const {
  std::lock_guard lock(mutex_);
  return functions_;
}

Result<uint64_t> Context::add_backend(BackendPtr backend) {
  uint64_t id = 0;
  KILN_TRY(change<BackendTable>(backends_, [&](BackendTable &backends) {
    id = next_backend_id_++;
    return backends.add(id, std::move(backend));
  }));
  return id;
}

Status Context::remove_backend(uint64_t id) {
  return change<BackendTable>(backends_, [id](BackendTable &backends) { return backends.remove(id); });
}

std::shared_ptr<const BackendTable> Context::backends() const {
  std::lock_guard lock(mutex_);
  return backends_;
}

bool Context::lets_load(std::string_view library) const {
  return std::ranges::find(load_symbols_, library) != load_symbols_.end();
}

Status Context::set_fact(std::string name, std::optional<AttrValue> value) {
  std::lock_guard lock(mutex_);
  if (closed_) return invalid("the context is closed");
  auto next = std::make_shared<AttrMap>(*facts_);
  next->erase(name);
  if (value) next->emplace(std::move(name), *std::move(value));
  facts_ = std::move(next);
  return {};
}

std::shared_ptr<const AttrMap> Context::facts() const {
  std::lock_guard lock(mutex_);
  return facts_;
}

PassList Context::passes() const {
  std::lock_guard lock(mutex_);
  return passes_;
}

namespace {

// Has a compile tell a sink, if there is one.
void tell(const std::shared_ptr<const EventSink> &receiver, CompileEnvironment &env) {
  env.progress = [receiver](std::string_view phase) { return receiver && (*receiver)(Event::progress, phase); };
  env.warning = [receiver](std::string_view text) { return receiver && (*receiver)(Event::warning, text); };
}

}  // namespace

Result<Compiled> Context::compile(GraphPtr graph, const CompileOptions &options, CompileReport &report) {
  PassList snapshot;
  std::shared_ptr<const EventSink> receiver;
  std::vector<std::string> warnings;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return invalid("the context is closed");
    snapshot = passes_;
    receiver = sink_;
    warnings = take_warnings_locked();
  }
  // Told here, and not when it happened: events reach only threads that are inside a call.
  for (const std::string &text : warnings)
    if (receiver && (*receiver)(Event::warning, text)) return error(Code::cancelled, "the host cancelled the compile");
  CompileEnvironment env = environment(snapshot);
  tell(receiver, env);
  env.later = [weak = weak_from_this()](LaterEntry entry) {
    if (const auto self = weak.lock()) self->make_later(std::move(entry));
  };
  const auto make = options.report_html.empty() ? kiln::compile : compile_with_page;
  Result<Compiled> compiled = make(env, std::move(graph), options, report);
  std::lock_guard lock(mutex_);
  passes_run_.add(report);
  if (compiled.ok()) {
    compiles_.add(report);
  } else {
    ++compiles_.failed;
  }
  return compiled;
}

Result<Artifact> Context::make_edited(const Unpacked &unpacked) {
  if (unpacked.edited.empty()) return *unpacked.artifact;
  std::shared_ptr<const EventSink> receiver;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return invalid("the context is closed");
    receiver = sink_;
  }
  const PassList none;
  CompileEnvironment env = environment(none);
  tell(receiver, env);
  return kiln::make_edited(env, unpacked);
}

Status Context::warn(std::string_view text) {
  std::shared_ptr<const EventSink> receiver;
  {
    std::lock_guard lock(mutex_);
    receiver = sink_;
  }
  if (receiver && (*receiver)(Event::warning, text)) return error(Code::cancelled, "the host cancelled the call");
  return {};
}

void CompileCounts::add(const CompileReport &report) {
  switch (report.lookup) {
    case Outcome::hit:
      ++hits;
      break;
    case Outcome::miss:
      ++misses;
      break;
    case Outcome::bypass:
      ++bypasses;
      break;
    case Outcome::reject:
      ++rejects;
      break;
  }
  kernels_compiled += report.kernels_compiled;
  kernels_from_cache += report.kernels_from_cache;
}

void PassCounts::add(const CompileReport &report) {
  for (const PassRun &run : report.passes) add(run);
  for (const PieceReport &piece : report.pieces)
    for (const PassRun &run : piece.passes) add(run);
  for (const EntryReport &entry : report.entries)
    if (entry.made) add(*entry.made);
}

void PassCounts::add(const PassRun &run) {
  if (run.built_in || run.runs == 0) return;
  skipped += !run.skipped.empty();
  if (run.failed_by.empty()) ++(run.rewrites ? rewrote : unchanged);
  for (const auto &[by, count] :
       {std::pair("throw", &threw), std::pair("error", &errors), std::pair("budget", &over_budget),
        std::pair("not done", &not_done), std::pair("invariant", &invariants)})
    *count += run.failed_by == by;
}

CompileEnvironment Context::environment(const PassList &passes) {
  return {
      .ops = ops(),
      .passes = passes,
      .cache = cache(),
      .cache_refusal = refusal_,
      .pool = pool_,
      .in_background = [this](std::function<Status()> task) { background_.submit(std::move(task)); },
      .modules = modules_,
      .functions = functions(),
      .backends = backends(),
      .facts = facts(),
      .files = files_,
      .passes_that_fail = passes_that_fail_,
      .is_news =
          [this](const Pass &pass) {
            std::lock_guard lock(mutex_);
            return told_numerics_.insert(pass.registration).second;
          },
  };
}

void Context::make_later(LaterEntry entry) {
  {
    std::lock_guard lock(mutex_);
    if (closing_) return;
  }
  background_.submit([this, later = std::move(entry)] {
    const PassList none;
    CompileReport report;
    const Status status = make_entry(environment(none), *later.maker, *later.executable, later.number, report);
    if (status.ok()) return Status();
    Entries &entries = later.executable->entries();
    entries.fail(later.number);
    std::lock_guard lock(mutex_);
    entry_failures_.push_back(str_cat("entry '", entries[later.number].name(), "' was not made: ", status.message()));
    return Status();
  });
}

Result<std::string> Context::compile_order(const Graph &graph, const CompileOptions &options) {
  const PassList snapshot = passes();
  return kiln::compile_order(environment(snapshot), graph, options);
}

Result<std::string> Context::explain_pass(GraphPtr graph, const CompileOptions &options, std::string_view name) {
  const PassList snapshot = passes();
  return kiln::explain_pass(environment(snapshot), std::move(graph), options, name);
}

std::vector<std::string> Context::take_warnings_locked() {
  std::vector<std::string> warnings;
  if (!told_refusal_ && !refusal_.empty()) warnings.push_back(refusal_);
  told_refusal_ = true;
  if (const uint64_t failures = background_.failures(); failures > told_failures_) {
    told_failures_ = failures;
    warnings.push_back(failed_saves());
  }
  for (const auto &pass : passes_.all()) {
    const bool is_silent = !pass->built_in() && !pass->uuid && pass->timing == Timing::by_identity;
    if (is_silent && pass->registration >= next_untold_pass_)
      warnings.push_back(str_cat(described(*pass), " has neither an identity nor a timing: ",
                                 pass->early() ? "it runs at every compile, before the cache is asked"
                                               : "compiles that run it do not use the cache"));
  }
  for (std::string &failure : entry_failures_) warnings.push_back(std::move(failure));
  entry_failures_.clear();
  for (std::string &failure : end_failures_) warnings.push_back(std::move(failure));
  end_failures_.clear();
  for (std::string &damage : damage_) warnings.push_back(std::move(damage));
  damage_.clear();
  next_untold_pass_ = next_pass_id_;
  return warnings;
}

void Context::add_end_failure(std::string text) {
  std::lock_guard lock(mutex_);
  end_failures_.push_back(std::move(text));
}

PreparedParts::Store Context::prepared_store() {
  PreparedParts::Store store{.in_background =
                                 [this](std::function<Status()> task) {
                                   if (!stopping_) background_.submit(std::move(task));
                                 },
                             .warn =
                                 [this](std::string text) {
                                   const std::lock_guard lock(mutex_);
                                   damage_.push_back(std::move(text));
                                 },
                             .tell = [this] { return tell_damage(); },
                             .stop = &stopping_};
  const char *const off = keeps_prepared_ ? "the context's cache is off" : "the context's option 'prepared' is false";
  if (cache_ && keeps_prepared_)
    store.records = &cache_->prepared();
  else
    store.reason = refusal_.empty() ? off : refusal_;
  return store;
}

std::vector<std::string> Context::take_damage() {
  const std::lock_guard lock(mutex_);
  return std::exchange(damage_, {});
}

Status Context::tell_damage() {
  for (const std::string &text : take_damage()) KILN_TRY(warn(text));
  return {};
}

TellHost Context::tell_of_runs() {
  constexpr uint32_t of_runs = 1u << static_cast<uint32_t>(Event::loop) | 1u << static_cast<uint32_t>(Event::entry) |
                               1u << static_cast<uint32_t>(Event::step);
  std::lock_guard lock(mutex_);
  if (!sink_ || !(sink_->kinds & of_runs)) return {};
  return [self = shared_from_this()](Event event, std::string_view text) {
    std::shared_ptr<const EventSink> receiver;
    {
      std::lock_guard own(self->mutex_);
      receiver = self->sink_;
    }
    return receiver && (*receiver)(event, text);
  };
}

std::string Context::failed_saves() const {
  return str_cat(background_.failures(), " saves to the cache failed; the first: ", background_.first_failure());
}

bool Context::let_go() noexcept {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  stopping_ = true;
  background_.close();
  // Destroyed after the lock is given up, the last one first: they run callbacks of host and plugins.
  PassList passes;
  std::shared_ptr<const EventSink> sink;
  std::shared_ptr<const HostFunctions> functions;
  std::shared_ptr<const BackendTable> backends;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return false;
    closed_ = true;
    backends = std::exchange(backends_, no_backends_);
    functions = std::exchange(functions_, no_functions_);
    passes = std::exchange(passes_, PassList());
    sink = std::exchange(sink_, nullptr);
  }
  sink = nullptr;
  functions = nullptr;
  backends = nullptr;
  passes = PassList();
  for (LoadedPlugin &plugin : plugins_) plugin.keep = nullptr;  // a closed context changes its plugins no more
  return true;
}

Status Context::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  background_.close();  // before letting go stops what need not be finished
  if (!let_go()) return {};
  // Nobody runs again who would be told.
  if (const auto damage = take_damage(); !damage.empty())
    return error(Code::corrupt,
                 "results may be wrong: ", join(damage, "; ", [](const std::string &text) { return text; }));
  if (background_.failures()) return error(Code::io, failed_saves());
  std::lock_guard lock(mutex_);
  if (end_failures_.empty()) return {};
  return error(Code::plugin_failed, join(end_failures_, "; ", [](const std::string &text) { return text; }));
}

}  // namespace kiln
