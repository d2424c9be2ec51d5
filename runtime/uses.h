// What an artifact was made with: its `uses`, collected while it is made and compared when it is found.
#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/registered.h"
#include "runtime/functions/function.h"
#include "runtime/graph/graph.h"
#include "runtime/plan/artifact.h"

namespace kiln {

// A table of ops that keeps what it was asked for, whether there was one or not. Passes and lowering get it in place of
// the context's. Threads: one compile's.
class RecordedOps final : public OpTable {
 public:
  explicit RecordedOps(const OpTable &ops) : ops_(ops) {}
  const OpSchema *find(std::string_view name) const override;
  std::string suggest(std::string_view name) const override { return ops_.suggest(name); }
  std::string identity(std::string_view name) const override { return ops_.identity(name); }

  void add(const Graph &graph);         // its ops, and those of the graphs nested in it
  void add(std::span<const Use> uses);  // ops among those of a part that was made by itself
  std::vector<Use> uses() const;
  std::string without_identity() const;  // an op that was asked for and has no UUID; empty: there is none

 private:
  const OpTable &ops_;
  mutable std::set<std::string, std::less<>> asked_;
};

// The same of the functions of the host.
class RecordedFunctions final : public FunctionTable {
 public:
  explicit RecordedFunctions(const FunctionTable &functions) : functions_(functions) {}
  FunctionPtr find(std::string_view name) const override;
  FunctionPtr fallback(std::string_view op) const override;
  bool has_fallbacks() const override { return functions_.has_fallbacks(); }
  std::string known() const override { return functions_.known(); }

  void add(std::span<const Use> uses);  // of a part that was made by itself
  void add_to(std::vector<Use> &uses) const;
  std::string without_identity() const;

 private:
  const FunctionTable &functions_;
  mutable std::set<std::string, std::less<>> asked_, asked_ops_;
};
// Those of them that an artifact was made with, and no others, which live on without it.
std::shared_ptr<const FunctionTable> functions_of(std::span<const Use> uses, const FunctionTable &functions);

// Kiln's own backend, and registered ones, that an artifact was made with.
std::vector<Use> uses_of_backends(std::string_view own, const std::set<std::string> &registered,
                                  const BackendTable &backends);
// The registered ones among them, and no others.
std::set<std::string> registered_backends(std::span<const Use> uses);
std::shared_ptr<const BackendTable> backends_of(std::span<const Use> uses, const BackendTable &backends);

// The first of `uses` that is another one now.
struct DifferingUse {
  std::string reason;  // of a lookup that does not find what they belong to
  bool is_missing;     // there is none of that name now: what was made with it cannot be run
};
std::optional<DifferingUse> differing_use(std::span<const Use> uses, const OpTable &ops,
                                          const FunctionTable &functions = no_functions(),
                                          const BackendTable &backends = no_backends());

}  // namespace kiln
