#include "runtime/uses.h"

#include <algorithm>

#include "runtime/backends/backend.h"
#include "runtime/cache/key.h"
#include "runtime/ops/registered.h"

namespace kiln {
namespace {

constexpr std::string_view op_kind = "op", backend_kind = "backend", function_kind = "function",
                           fallback_kind = "fallback";

// Of Kiln's own the build says which they are.
std::string identity_of_backend(std::string_view name, const BackendTable &backends) {
  return find_backend(name).ok() ? "built in" : backends.identity(name);
}

std::string identity_of(const FunctionPtr &function) { return function ? function->identity : ""; }
std::string identity_of_fallback(const FunctionPtr &function) {
  return function ? str_cat("'", function->name, "', ", function->identity) : "";
}

std::string identity_of(std::string_view kind, std::string_view name, const OpTable &ops,
                        const FunctionTable &functions, const BackendTable &backends) {
  if (kind == op_kind) return ops.identity(name);
  if (kind == function_kind) return identity_of(functions.find(name));
  if (kind == fallback_kind) return identity_of_fallback(functions.fallback(name));
  return kind == backend_kind ? identity_of_backend(name, backends) : "";
}

}  // namespace

const OpSchema *RecordedOps::find(std::string_view name) const {
  if (!asked_.contains(name)) asked_.emplace(name);
  return ops_.find(name);
}

void RecordedOps::add(const Graph &graph) {
  for (const auto &[name, op] : ops_of(graph)) asked_.insert(name);
}

void RecordedOps::add(std::span<const Use> uses) {
  for (const Use &use : uses)
    if (use.kind == op_kind) asked_.insert(use.name);
}

std::vector<Use> RecordedOps::uses() const {
  std::vector<Use> uses;
  for (const std::string &name : asked_) uses.push_back({std::string(op_kind), name, ops_.identity(name)});
  return uses;
}

std::string RecordedOps::without_identity() const {
  for (const std::string &name : asked_) {
    const OpSchema *op = ops_.find(name);
    if (const RegisteredOp *own = op ? registered(*op) : nullptr; own && !own->has_uuid) return name;
  }
  return "";
}

FunctionPtr RecordedFunctions::find(std::string_view name) const {
  asked_.emplace(name);
  return functions_.find(name);
}

FunctionPtr RecordedFunctions::fallback(std::string_view op) const {
  asked_ops_.emplace(op);
  const FunctionPtr function = functions_.fallback(op);
  if (function) asked_.insert(function->name);
  return function;
}

void RecordedFunctions::add(std::span<const Use> uses) {
  for (const Use &use : uses) {
    if (use.kind == function_kind) asked_.insert(use.name);
    if (use.kind == fallback_kind) asked_ops_.insert(use.name);
  }
}

void RecordedFunctions::add_to(std::vector<Use> &uses) const {
  for (const std::string &name : asked_)
    uses.push_back({std::string(function_kind), name, identity_of(functions_.find(name))});
  for (const std::string &op : asked_ops_)
    uses.push_back({std::string(fallback_kind), op, identity_of_fallback(functions_.fallback(op))});
}

std::string RecordedFunctions::without_identity() const {
  for (const std::string &name : asked_)
    if (const FunctionPtr function = functions_.find(name); function && !function->has_uuid) return name;
  return "";
}

std::shared_ptr<const FunctionTable> functions_of(std::span<const Use> uses, const FunctionTable &functions) {
  auto table = std::make_shared<HostFunctions>();
  uint64_t id = 0;
  for (const Use &use : uses)
    if (FunctionPtr function = use.kind == function_kind ? functions.find(use.name) : nullptr)
      (void)table->add(++id, std::move(function));
  for (const Use &use : uses)
    if (const FunctionPtr function = use.kind == fallback_kind ? functions.fallback(use.name) : nullptr)
      (void)table->add_fallback(++id, use.name, function->name);
  return table;
}

std::vector<Use> uses_of_backends(std::string_view own, const std::set<std::string> &registered,
                                  const BackendTable &backends) {
  std::vector<Use> uses;
  const auto add = [&](std::string_view name) {
    uses.push_back({std::string(backend_kind), std::string(name), identity_of_backend(name, backends)});
  };
  add(own);
  std::ranges::for_each(registered, add);
  return uses;
}

std::set<std::string> registered_backends(std::span<const Use> uses) {
  std::set<std::string> names;
  for (const Use &use : uses)
    if (use.kind == backend_kind && !find_backend(use.name).ok()) names.insert(use.name);
  return names;
}

std::shared_ptr<const BackendTable> backends_of(std::span<const Use> uses, const BackendTable &backends) {
  auto table = std::make_shared<BackendTable>();
  uint64_t id = 0;
  for (const std::string &name : registered_backends(uses))
    if (BackendPtr backend = backends.find(name)) (void)table->add(++id, std::move(backend));
  return table;
}

std::optional<DifferingUse> differing_use(std::span<const Use> uses, const OpTable &ops, const FunctionTable &functions,
                                          const BackendTable &backends) {
  for (const Use &use : uses) {
    const std::string now = identity_of(use.kind, use.name, ops, functions, backends);
    if (now == use.identity) continue;
    const std::string what = str_cat(use.kind, use.kind == fallback_kind ? " of '" : " '", use.name, "' ");
    if (use.identity.empty())
      return DifferingUse{str_cat(what, "(", now, ") is there, and the record was made without one"), false};
    if (now.empty())
      return DifferingUse{str_cat(what, "(", use.identity, "), which the record was made with, is not there"), true};
    return DifferingUse{str_cat(what, "is ", now, ", and the record was made with ", use.identity), false};
  }
  return std::nullopt;
}

}  // namespace kiln
