// The planner: from scheduled kernels to the plan that an executable runs.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "jit/kernel/fuse.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/specialize.h"
#include "runtime/plan/artifact.h"
#include "runtime/plan/contract.h"
#include "runtime/plan/piece.h"
#include "runtime/plan/plan.h"
#include "runtime/regions/lower_graphs.h"

namespace kiln {

// Of a plan for fixed sizes: its graphs are made of specialize(*whole, sizes). What the given graph and `whole` require
// is checked, at these.
struct FixedAs {
  GraphPtr whole = nullptr;
  FixedSizes sizes = {};  // empty: all of them
};

struct Planned {
  Plan plan;
  std::vector<Contract> contracts;       // by image
  std::vector<TensorPtr> constants;      // those that steps read, in the order that the plan's slots number them
  std::vector<std::string> graphs;       // as JSON: what steps of kind reference run
  std::map<uint32_t, Program> programs;  // what runs some of them
};

// `given` is the graph as the host gave it: its signature is the plan's, and what it requires of sizes is checked at
// each call, also where passes have replaced the nodes that require it. `graphs` are of the compiled graph and fused;
// `images` has the image of each launch, in the order of graphs, regions and launches. Deterministic; near-linear in
// the number of launches.
Result<Planned> plan(const Graph &given, const LoweredGraphs &graphs, std::span<const uint32_t> images,
                     const FixedAs &fixed = {});

// One plan that does what all pieces do, one after another, and what its steps use. `given` is as for plan(); `whole`
// is the graph that was cut, whose own nodes give no steps.
struct Linked {
  Plan plan;
  std::vector<TensorPtr> constants;  // in the order that the plan's slots number them
  PieceParts parts;
};
Result<Linked> link(const Graph &given, const GraphPtr &whole, std::span<const Piece> pieces,
                    const FixedAs &fixed = {});

// The plan of the reference backend: one step that runs the graph as it is.
Result<Plan> plan_reference(const Graph &graph);

}  // namespace kiln
