// Graphs that nobody thought of: drawn from a seed, each with the arguments of the calls that it is tested by.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/graph/graph.h"
#include "tests/backend/guarded_run.h"

namespace kiln::testing {

struct RandomCase {
  uint64_t seed = 0;
  GraphPtr graph;
  std::vector<GraphCall> calls;  // at least one; parameters without symbols are the same in all
};

// Draws a graph of 1 to 40 nodes. Each node is an op of the registry with operands and attributes that `infer` accepts
// and that the reference kernel can run at the sizes of every call; nodes of which a value grows out of hand are mostly
// drawn again, since they would hide what comes after them. A seed gives the same case on every machine.
Result<RandomCase> draw_case(uint64_t seed);

// Drops all that does not make it fail, as far as that goes in some hundred tries: outputs, and whatever lies above a
// value, which becomes an input that holds it. `fails` is true of the case given.
RandomCase shrink(RandomCase failing, const std::function<bool(const RandomCase &)> &fails);

}  // namespace kiln::testing
