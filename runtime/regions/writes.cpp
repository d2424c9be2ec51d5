#include "runtime/regions/writes.h"

#include <algorithm>

namespace kiln {
namespace {

bool writes(const Node &node) { return node.op && (node.op->flags & op_flags::mutates) != 0; }

}  // namespace

ReadersOfWritten::ReadersOfWritten(const Graph &graph) {
  for (const Node &node : graph.nodes())
    if (writes(node)) readers_[node.inputs[0].node];
  if (readers_.empty()) return;
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op) continue;
    for (size_t k = writes(node) ? 1 : 0; k < node.inputs.size(); ++k) {
      const auto written = readers_.find(graph.storage_of(node.inputs[k]).node);
      if (written == readers_.end() || (writes(node) && written->first == node.inputs[0].node)) continue;
      std::vector<uint32_t> &readers = written->second;
      if (readers.empty() || readers.back() != node.id) readers.push_back(node.id);
    }
  }
}

std::span<const uint32_t> ReadersOfWritten::before(const Node &node) const {
  if (!writes(node)) return {};
  return readers_.find(node.inputs[0].node)->second;
}

}  // namespace kiln
