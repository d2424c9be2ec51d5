// The patterns of one pass: found by the op at which they begin, and rewritten.
// Threads: a PatternSet may be read from any thread.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "jit/base/bytes.h"
#include "runtime/graph/edit.h"
#include "runtime/patterns/matcher.h"

namespace kiln::patterns {

// What takes the place of the outputs of a match, in order, in an edit; none: the place is left as it is.
using Rewrite = std::function<Result<std::vector<ValueId>>(size_t pattern, const Place &place)>;

// How near a graph came to a pattern, where it was not found.
struct Explained {
  uint64_t found = 0;  // places
  Miss closest = {};   // of those where it was not; `why` empty: nothing in the graph has the op that it begins at
};

class PatternSet {
 public:
  // Names must differ.
  static Result<PatternSet> make(std::vector<Pattern> patterns);
  std::span<const Pattern> patterns() const { return patterns_; }
  // Has a table that records what it is asked know which registered ops it depends on.
  void ask_for_ops(const OpTable &ops) const;

  // Rewrites each place once: in the order of the nodes as they stand, at each the first pattern that is found there.
  // What a replacement adds is no place of its own, but later ones may reach into it. Adds to `matches`, one number for
  // each pattern, how many places were rewritten; so many in all. A failure names pattern and node.
  Result<uint64_t> apply(Edit &edit, const Rewrite &rewrite, std::span<uint64_t> matches) const;
  // Changes nothing. One for each pattern is added to.
  void explain(const Graph &graph, std::span<Explained> out) const;

 private:
  // Which ops stand among a node's operands, and among theirs: a bit of 64 each.
  struct Around {
    uint64_t operands = 0, theirs = 0;
    bool covers(const Around &needed) const {
      return (needed.operands & ~operands) == 0 && (needed.theirs & ~theirs) == 0;
    }
  };
  struct Entry {
    Around needed;
    uint32_t pattern;
  };
  static Around needed_by(const Pattern &pattern);
  static Around around(const Graph &graph, const Node &node);

  std::vector<Pattern> patterns_;
  std::unordered_map<const OpSchema *, std::vector<Entry>> by_root_;
};

}  // namespace kiln::patterns
