// partition chain|crossing NODES MARKS NAMES: cuts a graph of additions, of which some are marked at random for one of
// NAMES regions each, under mode `marked`. Prints the milliseconds that it took, the fastest of nine. `chain`: each
// node adds to the one before it; `crossing`: two that stand anywhere before it. The library's inside: compiling takes
// longer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>

#include "runtime/backends/rows.h"
#include "runtime/graph/edit.h"
#include "runtime/ops/op.h"
#include "runtime/regions/region.h"

namespace kiln::bench {
namespace {

Result<GraphPtr> graph_of(bool chain, uint32_t nodes, uint32_t marks, uint32_t names) {
  std::mt19937 random(7);
  std::vector<uint32_t> order(nodes);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  std::vector<AttrMap> annotations(nodes);
  for (uint32_t i = 0; i < marks; ++i) annotations[order[i]] = {{"kiln.region", str_cat("r", i % names)}};
  Edit edit;
  std::vector<ValueId> values;
  KILN_ASSIGN(values.emplace_back(), edit.input("x", make_type(DType::f32, {Dim(16)})));
  for (uint32_t i = 0; i < nodes; ++i) {
    const auto any = [&] { return values[random() % values.size()]; };
    const ValueId operands[] = {chain ? values.back() : any(), chain ? values.front() : any()};
    KILN_ASSIGN(const uint32_t node, edit.add(builtin_ops().find("add"), operands, {}, {}, std::move(annotations[i])));
    values.push_back({node, 0});
  }
  std::vector<GraphOutput> outputs;
  for (const ValueId value : values)
    if (edit.view().use_count(value) == 0) outputs.push_back({str_cat("y", outputs.size()), value});
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  return edit.finish();
}

// Each node is in one region.
bool is_whole(const std::vector<Region> &regions, size_t nodes) {
  size_t found = 0;
  for (const Region &region : regions)
    found += static_cast<size_t>(
        std::ranges::count_if(region.graph->nodes(), [](const Node &node) { return node.op != nullptr; }));
  return found == nodes;
}

int run(char **words) {
  const auto number = [&](int i) { return static_cast<uint32_t>(std::atoi(words[i])); };
  const Result<GraphPtr> graph = graph_of(std::strcmp(words[1], "chain") == 0, number(2), number(3), number(4));
  Refusals refusals(cpu_backend);
  double best = 1e30;
  for (int round = 0; graph.ok() && round < 9; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const Result<std::vector<Region>> regions = partition(*graph, refusals, {Mode::marked, Mode::marked});
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    if (!regions.ok() || !is_whole(*regions, number(2))) return 1;
  }
  std::printf("%f\n", best);
  return graph.ok() ? 0 : 1;
}

}  // namespace
}  // namespace kiln::bench

int main(int count, char **words) { return count == 5 ? kiln::bench::run(words) : 2; }
