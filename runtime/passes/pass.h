// A graph pass: built in, from a plugin, or from the host. Named by stage; identified (or not) for the cache's key.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/hash.h"
#include "jit/base/status.h"
#include "runtime/graph/edit.h"
#include "runtime/passes/questions.h"
#include "runtime/patterns/pattern_set.h"

namespace kiln {

// Numbers are KILN_STAGE_* and KILN_TIMING_*.
enum class Stage : uint8_t { pre_grad = 1, post_grad = 3, lower = 4 };
enum class Timing : uint8_t { by_identity = 0, late = 1, early = 2 };  // by_identity: late with an identity, else early
std::string_view name_of(Stage stage);

// What becomes of a compile one of whose passes fails, and when one has taken too long.
struct PassPolicy {
  bool skips_failures = false;  // it goes on with the graph as that pass found it
  uint32_t budget_ms = 0;       // of one pass, on a graph and all that are nested in it; 0: none
};

struct Pass;
using Uuid = std::array<uint8_t, 16>;

// What a compile offers the passes that it runs.
struct PassHost {
  // Whom it tells; each may be empty, and returns true to cancel. Called on the compiling thread.
  std::function<bool(std::string_view what)> progress = {}, warning = {};
  Questions *questions = nullptr;  // null: nothing can be asked
  // What is asked of `questions` that is not keyed, and why (the first reason) what is made must not be kept. Null: of
  // passes whose result is keyed.
  Asked *asked = nullptr;
  std::string *uncacheable = nullptr;
  PassPolicy policy = {};
};

// What a running pass works with. The pass edits; the pipeline verifies and commits.
struct PassContext {
  using Clock = std::chrono::steady_clock;
  Edit &edit;
  const OpTable &ops;
  const AttrMap &options;
  bool done = false;  // the pass said that it is done; else it failed
  uint64_t rewrites = 0;
  GraphPtr replacement;  // set: takes the place of the edit's result (same signature)
  bool is_part = false;  // of a graph, which binds the symbols that it declares (graph/verify_part.h)
  const Pass *pass = nullptr;
  const PassHost *host = nullptr;          // null: nobody listens or answers
  std::optional<std::string> region = {};  // whose graph it is
  std::optional<Clock::time_point> ends_by = {};
  bool cancelled = false;                    // by the host, while the pass ran: whatever it returns
  bool took_too_long = false;                // likewise, by its budget
  std::vector<std::string> notes, warnings;  // of the pass, for the report
  std::vector<uint64_t> matches = {};        // of each of its patterns: places that were rewritten
};

// The patterns of a pass, and the texts that they were read from.
struct PassPatterns {
  patterns::PatternSet set;
  std::vector<std::string> texts;  // as they were declared
  Digest digest;                   // of these
};

// What a pass adds to the key by itself, or why nothing that it makes can have one (empty: it can).
struct Fingerprint {
  ByteWriter key = {};
  std::string uncacheable = {};
  Questions *questions = nullptr;  // null: nothing can be asked
};

struct Pass {
  std::string name;  // with its label, "NAME:LABEL", where it has one
  std::string label = {};
  std::string plugin = {};  // path or name of who registered it; empty: built in
  std::string version = {};
  Stage stage = Stage::post_grad;
  Timing timing = Timing::by_identity;
  int32_t priority = 0;
  uint64_t registration = 0;        // id, in order of registration
  std::optional<Uuid> uuid = {};    // the identity; built-ins are covered by the build id
  std::optional<Digest> file = {};  // the plugin file's, unless its UUID suffices
  AttrMap options = {};
  bool numerics = false;                              // it changes what is computed, beyond rounding
  bool top_only = false;                              // it does not run on nested graphs
  bool on_request = false;                            // built in: it runs where the option `algebra` asks for it
  std::shared_ptr<const PassPatterns> patterns = {};  // null: it has none
  std::function<Status(PassContext &)> run = {};
  std::function<Status(Fingerprint &)> fingerprint = {};  // may be empty; asked at every lookup
  std::shared_ptr<void> keep = {};                        // the plugin's or host's state; destroyed with the last copy

  bool built_in() const { return plugin.empty(); }
  // Before the key is made, at every compile: only passes of pre_grad can.
  bool early() const {
    const bool by_identity = timing == Timing::by_identity && !uuid && !built_in();
    return stage == Stage::pre_grad && (timing == Timing::early || by_identity);
  }
};

// "pass 'fuse' of costs", for messages.
std::string described(const Pass &pass);
// An error of `pass`, below which `cause` (may be null) tells what happened.
Status blame(const Pass &pass, Code code, std::string_view message, std::shared_ptr<const ErrorInfo> cause = nullptr);
// What a callback of the pass failed with: "WHAT failed: …". A lack of memory stays one, all else is the plugin's
// fault.
Status blame_failure(const Pass &pass, std::string_view what, const Status &failure);

// What of a pass is in the key: all of the above that can change its result, its place in the ordered list, and what
// its fingerprint adds or says. The error is the fingerprint's.
Status write_identity(const Pass &pass, uint64_t position, Fingerprint &out);
// Of a kind that options may have: equal values, and no others, have equal bytes.
void write_value(const AttrValue &value, ByteWriter &out);

}  // namespace kiln
