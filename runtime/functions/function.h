// Functions that a host registered, and the tables that they are looked up in.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/json_writer.h"
#include "jit/base/named_table.h"
#include "runtime/functions/native_call.h"
#include "runtime/functions/signature.h"
#include "runtime/graph/graph.h"

namespace kiln {

// Whoever registered it (abi/src/function.cpp): what runs around its calls, and, when the last owner goes, at its end.
class FunctionOwner {
 public:
  virtual ~FunctionOwner() = default;
  // Calls the function by `call`, which returns the address of its kiln_error, or null.
  virtual Status run(const std::function<void *()> &call) const = 0;
};

// Immutable; any number of threads.
struct Function {
  std::string name, version;
  std::string identity;     // with its version and signature; also of one without a UUID
  bool has_uuid = false;    // without, what is made with it cannot be cached
  bool any_thread = false;  // it may be called on threads of Kiln's
  std::string plugin;       // "": the host's
  std::string library;      // the file that it is of; empty: a pointer of the host's
  FunctionSignature signature;
  NativeCall native;
  void (*pointer)() = nullptr;
  void *user = nullptr;
  std::unique_ptr<const FunctionOwner> owner;
};
using FunctionPtr = std::shared_ptr<const Function>;

class FunctionTable {
 public:
  virtual ~FunctionTable() = default;
  virtual FunctionPtr find(std::string_view name) const = 0;    // null: there is none
  virtual FunctionPtr fallback(std::string_view op) const = 0;  // what runs its nodes that fall back; null: Kiln
  virtual bool has_fallbacks() const = 0;                       // whether any op has one
  virtual std::string known() const = 0;                        // "; there are a, b", or that there are none
};
const FunctionTable &no_functions();

// Those of a context. Whoever compiles has a copy, which nobody changes.
class HostFunctions final : public FunctionTable {
 public:
  FunctionPtr find(std::string_view name) const override;
  FunctionPtr fallback(std::string_view op) const override;
  bool has_fallbacks() const override { return !fallbacks_.empty(); }
  std::string known() const override { return functions_.known(); }

  // Ids are the caller's, and tell both kinds apart. invalid_argument: the name, or the op, has one already.
  Status add(uint64_t id, FunctionPtr function);
  // unknown_name: no function has the name.
  Status add_fallback(uint64_t id, std::string_view op, std::string_view function);
  // out_of_range: no function, or no fallback, has the id; invalid_argument: an op falls back to the function.
  Status remove(uint64_t id);
  Status remove_fallback(uint64_t id);
  // {"functions": [...], "fallbacks": [...]}, as members of an open object (kiln_context_report).
  void write_report(JsonWriter &json) const;

 private:
  NamedTable<FunctionPtr> functions_;
  NamedTable<std::string> fallbacks_;  // by op, the function
};

// Errors name the node: one that is marked to be run by a function, and is a call, control flow, or writes an input.
Status check_function_marks(const Graph &graph);
// All that nodes of the graph name, and of the graphs nested in it.
std::set<std::string> functions_named(const Graph &graph);
// What runs a node, as its annotation kiln.fallback.function names it; empty: nothing of the host's.
std::string_view function_of(const Node &node);
// "function 'f' runs it".
std::string runs_it(std::string_view function);

}  // namespace kiln
