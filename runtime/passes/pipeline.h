// The ordered list of passes, and running a stage of it: each plugin pass in a transaction that is verified.
//
// pre_grad early passes run before the key is made: what they made is what is keyed. All others run after a miss.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/passes/pass.h"

namespace kiln {

struct PatternRun {
  std::string name;
  uint64_t matches = 0, expected = 0;  // at least so many
};
// One pass of a compile, as its report tells it.
struct PassRun {
  std::string name, stage;
  uint64_t rewrites = 0, runs = 0, nodes_before = 0, nodes_after = 0;
  double ms = 0;
  uint64_t clones = 0;  // of outputs that would have come to share storage
  std::vector<std::string> notes = {}, warnings = {};
  std::vector<PatternRun> patterns = {};
  bool built_in = false;
  bool numerics = false;       // it changes what is computed
  std::string skipped = {};    // why it did nothing, for it failed: its error
  std::string failed_by = {};  // of a pass that failed: "throw", "error", "budget", "not done" or "invariant"
  Digest digest = {};          // of the graph that it made; of stage lower of the regions' digests, in order
};
PassRun run_of(const Pass &pass);  // that has not begun

// Built-ins and registered passes. A value: a compile takes a snapshot.
class PassList {
 public:
  static PassList built_in();  // pipeline.cpp lists them
  // Refuses: a second registration of one UUID or one name; a name that means a stage; an all-zero UUID; late without
  // identity.
  Status add(std::shared_ptr<const Pass> pass);
  Status remove(uint64_t registration);
  // Ordered by stage, priority, registration. `only` (none: all) chooses among registered passes (built-ins stay),
  // `without` removes any; both are exact names, an unknown one is an error.
  Result<std::vector<std::shared_ptr<const Pass>>> select(const std::optional<std::vector<std::string>> &only,
                                                          std::span<const std::string> without) const;
  std::span<const std::shared_ptr<const Pass>> all() const { return passes_; }

 private:
  std::vector<std::shared_ptr<const Pass>> passes_;
};

// Runs one pass on each graph nested in `graph`, once and innermost first, then on `graph`: edit, done, verify, commit.
// On failure the error names plugin, pass, `where` ("in region 'a': "), invariant and node, and the caller still has
// the graph it gave. An output that has come to share storage with an argument or another output becomes a clone, and
// is counted. Adds what it did, on all these graphs, to `run`.
// Where the compile's policy is to skip what fails, a pass that fails leaves the graph as it is, and `run` says why.
struct Where {
  std::string text = {};
  bool is_part = false;  // of a graph, which binds the symbols that it declares (graph/verify_part.h)
  std::optional<std::string> region = {};
};
Result<GraphPtr> run_pass(const Pass &pass, const GraphPtr &graph, const OpTable &ops, PassRun &run,
                          const Where &where = {}, const PassHost *host = nullptr);

// The passes of stage lower, and their runs, one each.
struct LowerPasses {
  std::span<const std::shared_ptr<const Pass>> passes = {};
  std::span<PassRun> runs = {};
  const PassHost *host = nullptr;
  // Told what a pass, or the decomposing behind them, made of a region or of a nested graph (`part`); may be empty. Its
  // error ends the compile.
  std::function<Status(std::string_view pass, const std::string &part, const GraphPtr &before, const GraphPtr &after)>
      observe = {};
};
// Runs them on a region's graph. For them its calls are inlined, and those of graphs that its nodes carry.
Result<GraphPtr> run_lower_passes(const LowerPasses &lower, GraphPtr region, const OpTable &ops, const Where &where);

}  // namespace kiln
