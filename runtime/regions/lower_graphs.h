// A compile's graph and the graphs that its control nodes carry, each cut into regions and lowered.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jit/kernel/fuse.h"
#include "runtime/graph/graph.h"
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
  GraphPtr graph = {};  // flat and decomposed
  std::vector<LoweredRegion> regions = {};
};

struct LoweredGraphs {
  std::vector<LoweredGraph> graphs;  // the compile's own graph is the first
  // Of a graph that a control node in one of them carries.
  size_t number_of(const GraphPtr &nested) const { return numbers.at(nested.get()); }
  std::map<const Graph *, size_t> numbers;
};

// Inlines calls, widens, decomposes, partitions and lowers `graph` and, each once, the graphs that are nested in it.
// Not fused yet.
Result<LoweredGraphs> lower_graphs(const GraphPtr &graph, const OpTable &ops, const LowerOptions &options);

// Fuses all regions of code. A scan whose turns fuse into one kernel becomes code; a graph that only such nodes carry
// has no regions any more. Returns the sum of their kernel::Fused::materialised.
Result<uint32_t> fuse(LoweredGraphs &graphs, const Target &target, const kernel::FuseOptions &options);

}  // namespace kiln
