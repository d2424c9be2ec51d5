// The turn of a scan as computes, for all turns to become one kernel.
#pragma once
#include <optional>
#include <string>

#include "jit/kernel/fuse.h"
#include "runtime/backends/backend.h"
#include "runtime/backends/registered.h"
#include "runtime/functions/function.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/schema.h"
#include "runtime/regions/lower.h"
#include "runtime/regions/region_options.h"

namespace kiln {

struct LowerOptions {
  const BackendInfo &backend;
  RegionOptions region = {};  // of the whole graph, or of a region of it
  Modes modes = {};           // of the whole graph
  NamedRegionOptions of_regions = {};
  const FunctionTable *functions = &no_functions();  // of the host
  ChosenBackends backends = {};                      // registered ones, which regions name
};

// Inlines calls, widens and decomposes: what regions are cut from.
Result<GraphPtr> flatten(GraphPtr graph, const OpTable &ops, const LowerOptions &options);

struct LoweredTurn {
  Lowered lowered;  // inputs and outputs are those of the scan; the program is one turn
  kernel::Turns turns;
};
// Nothing: its body has control flow, or may fail, or gives out what it is given. `nested`: the graph is, to which
// nothing is bound.
Result<std::optional<LoweredTurn>> lower_turn(const Graph &graph, const Node &scan, const OpTable &ops,
                                              const LowerOptions &options, bool nested);

}  // namespace kiln
