// A compile's graph and the graphs that its control nodes carry, each cut into regions and lowered.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "jit/kernel/fuse.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/pipeline.h"
#include "runtime/regions/lower.h"
#include "runtime/regions/region.h"
#include "runtime/regions/turn.h"

namespace kiln {

struct LoweredRegion {
  Region region;
  Lowered lowered = {};                  // code alone
  kernel::Fused fused = {};              // likewise, once it is fused
  std::optional<LoweredTurn> turn = {};  // of a scan that may become code
};
struct LoweredGraph {
  GraphPtr given;       // before calls were inlined
  GraphPtr graph = {};  // flat; decomposed, unless it is cut into parts
  std::vector<LoweredRegion> regions = {};
  RegionOptions options = {};  // of a graph that is cut: of what falls back
  bool owned = false;          // by a part: it is one, or a control node in one carries it, and is not cut by marks
};

struct LoweredGraphs {
  std::vector<LoweredGraph> graphs;  // the compile's own graph is the first
  bool cut = false;                  // into parts, by modes or because the backend does not take all nodes
  // Of a part of `of`, or of a graph that a control node in it carries.
  size_t number_of(const LoweredGraph &of, const GraphPtr &inner) const {
    return numbers.at({inner.get(), of.owned, of.options});
  }
  // Numbers of those that one runs, itself among them.
  std::set<size_t> reached_from(size_t number) const;
  // By graph, and how it is lowered: whether it is within a part, and with which options.
  std::map<std::tuple<const Graph *, bool, RegionOptions>, size_t> numbers;
};

// Inlines calls, widens, decomposes, partitions and lowers `graph` and, each once, the graphs that are nested in it.
// Modes that cut it do so first: then this is done to each part, of which equal ones, but for names, are lowered once,
// and to nested graphs of parts. Passes of stage lower run on what is a region, its nested graphs included, once it is
// flat but for these; what falls back is none. Not fused yet.
Result<LoweredGraphs> lower_graphs(const GraphPtr &graph, const OpTable &ops, const LowerOptions &options,
                                   const LowerPasses &passes = {});
// Of all graphs, as they are lowered.
Digest digest_of(const LoweredGraphs &graphs);

// Fuses all regions of code, each as its options say. A scan whose turns fuse into one kernel becomes code; a graph
// that only such nodes carry has no regions any more. Returns the sum of their kernel::Fused::materialised.
Result<uint32_t> fuse(LoweredGraphs &graphs, const Target &target);

}  // namespace kiln
