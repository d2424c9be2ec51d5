#include "runtime/uses.h"

#include "runtime/backends/backend.h"
#include "runtime/cache/key.h"
#include "runtime/ops/registered.h"

namespace kiln {
namespace {

constexpr std::string_view op_kind = "op", backend_kind = "backend";

// Backends are built in, and the build says which they are.
std::string identity_of_backend(std::string_view name) { return find_backend(name).ok() ? "built in" : ""; }

std::string identity_of(std::string_view kind, std::string_view name, const OpTable &ops) {
  if (kind == op_kind) return ops.identity(name);
  return kind == backend_kind ? identity_of_backend(name) : "";
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

std::vector<Use> RecordedOps::uses(std::string_view backend) const {
  std::vector<Use> uses = {{std::string(backend_kind), std::string(backend), identity_of_backend(backend)}};
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

std::string differing_use(std::span<const Use> uses, const OpTable &ops) {
  for (const Use &use : uses) {
    const std::string now = identity_of(use.kind, use.name, ops);
    if (now == use.identity) continue;
    const std::string what = str_cat(use.kind, " '", use.name, "' ");
    if (use.identity.empty()) return str_cat(what, "(", now, ") is there, and the record was made without one");
    if (now.empty()) return str_cat(what, "(", use.identity, "), which the record was made with, is not there");
    return str_cat(what, "is ", now, ", and the record was made with ", use.identity);
  }
  return "";
}

}  // namespace kiln
