// Backends that hosts and plugins register, and the tables that they are looked up in.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "jit/base/bytes.h"
#include "jit/base/json_writer.h"
#include "jit/base/named_table.h"
#include "jit/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/rounding.h"
#include "runtime/ops/registered.h"

namespace kiln {

// What runs a region for one call object. One thread at a time.
class BackendRun {
 public:
  virtual ~BackendRun() = default;
  // Before the first run, and when dims change: the region's inputs, parameters and outputs.
  virtual void resize(std::span<const RunArray> arrays) = 0;
  // Where the same arrays are. `prepared`: as prepare() made it; null: it did not. Returns when the outputs are there.
  virtual Status run(std::span<void *const> data, void *prepared) = 0;
};

// A region's bytes, loaded. Threads: any. Whoever has something that it made holds it.
class BackendProgram : public std::enable_shared_from_this<BackendProgram> {
 public:
  virtual ~BackendProgram() = default;
  virtual bool prepares() const = 0;
  virtual Result<std::shared_ptr<void>> prepare(std::span<const RunArray> parameters,
                                                std::span<void *const> data) const = 0;
  virtual Result<std::unique_ptr<BackendRun>> open() const = 0;
};

// What a backend was registered with (abi/src/backend.cpp makes it). kiln/backend.h says what each does.
class BackendFunctions {
 public:
  virtual ~BackendFunctions() = default;
  virtual Result<Bytes> target() const = 0;
  // Why it does not take the node; nothing: it does.
  virtual Result<std::optional<std::string>> refusal(const GraphPtr &graph, uint32_t node,
                                                     const AttrMap &options) const = 0;
  virtual Result<Bytes> compile(const GraphPtr &region, const AttrMap &options) const = 0;
  virtual Result<std::shared_ptr<const BackendProgram>> load(std::shared_ptr<const Bytes> blob) const = 0;
};

// Immutable; any number of threads.
struct Backend {
  std::string name, version;
  std::string identity;     // without what its target tells; also of one without a UUID
  bool has_uuid = false;    // without, what is made with it cannot be cached
  bool any_thread = false;  // its target, takes and compile may be called on threads of Kiln's
  bool symbolic = false;    // takes nodes whose sizes a call tells
  std::string plugin;       // "": the host's
  AttrMap options;          // with their defaults
  std::unique_ptr<const BackendFunctions> functions;

  // With what its target tells, which is asked when this is first.
  Result<std::string> whole_identity() const;

 private:
  mutable std::mutex mutex_;
  mutable std::string whole_;
};
using BackendPtr = std::shared_ptr<const Backend>;

// Those of a context. Whoever compiles or loads has a copy, which nobody changes.
class BackendTable {
 public:
  BackendPtr find(std::string_view name) const;  // null: there is none
  // What each is now, as an artifact keeps it; empty: there is none.
  std::string identity(std::string_view name) const;
  std::string known() const { return backends_.known(); }  // "; there are a, b", or that there are none
  std::vector<std::string> names() const { return backends_.names(); }
  bool all_for_any_thread() const;

  // Ids are the caller's. invalid_argument: the name has one already.
  Status add(uint64_t id, BackendPtr backend);
  Status remove(uint64_t id);  // out_of_range: no backend has the id
  // "backends": [...], as a member of an open object (kiln_context_report).
  void write_report(JsonWriter &json) const;

 private:
  NamedTable<BackendPtr> backends_;
};
const BackendTable &no_backends();

// One that a compile may choose, and the options that it gives it.
struct ChosenBackend {
  BackendPtr backend;
  AttrMap options;
  // As takes and compile are given them: what is said for a region comes first, and has been checked. With what Kiln
  // asks of all backends, as "kiln.rounding".
  AttrMap options_with(const AttrMap &of_region, Rounding rounding) const;
};
using ChosenBackends = std::map<std::string, ChosenBackend, std::less<>>;

// `what` ("option 'backend.b.threads'") gives `value` to the option `name`. unknown_name: it has none of the name;
// type_mismatch: it is of another kind.
Status check_option(const Backend &backend, std::string_view what, std::string_view name, const AttrValue &value);
// Options of a compile are called "backend.NAME.OPTION".
inline bool names_a_backend(std::string_view option) { return option.starts_with("backend."); }
// Those of the names, with their options. unknown_name: no backend, or no option of one, is called so; type_mismatch:
// the option is of another kind.
Result<ChosenBackends> choose_backends(const BackendTable &table, const std::set<std::string> &names,
                                       const AttrMap &options);

}  // namespace kiln
