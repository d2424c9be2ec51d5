// Plans of graphs, without code.
#pragma once
#include <numeric>

#include "runtime/backends/rows.h"
#include "runtime/plan/planner.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::test {

// The plan of a graph, each launch with an image of its own.
inline Planned planned(const GraphPtr &graph, bool fuse) {
  Result<LoweredGraphs> lowered =
      lower_graphs(graph, builtin_ops(), {.backend = cpu_backend, .region = {.fuse = fuse}});
  EXPECT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_TRUE(kiln::fuse(*lowered, *Target::by_name("v3")).ok());
  size_t launches = 0;
  for (const LoweredGraph &g : lowered->graphs)
    for (const LoweredRegion &region : g.regions) launches += region.fused.launches.size();
  std::vector<uint32_t> images(launches);
  std::iota(images.begin(), images.end(), 0u);
  Result<Planned> made = plan(*graph, *lowered, images);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(made).value() : Planned{};
}

}  // namespace kiln::test
