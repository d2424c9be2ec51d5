#include <algorithm>
#include <set>
#include <unordered_map>

#include "runtime/graph/annotations.h"
#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

bool mergeable(const Node &node) {
  if (node.kind == Node::Kind::constant) return true;
  constexpr uint32_t kept = op_flags::random | op_flags::mutates;
  return node.kind == Node::Kind::op && !(node.op->flags & kept) && !has_effect(node);
}

uint64_t hash_of(const Node &node) {
  ByteWriter bytes;
  bytes.put(static_cast<uint8_t>(node.kind));
  if (node.constant) bytes.put(checksum_of(node.constant->bytes));
  if (node.op) bytes.text(node.op->name);
  for (ValueId input : node.inputs) bytes.put(input.packed());
  for (const auto &[name, value] : node.attrs) bytes.text(value.text());
  return checksum_of(bytes.bytes());
}

bool same(const Node &a, const Node &b) {
  if (a.kind != b.kind || a.op != b.op || a.inputs != b.inputs) return false;
  if (a.constant && !(*a.constant == *b.constant)) return false;
  return a.attrs == b.attrs && same_annotations(a.annotations, b.annotations);
}

// The storage that the outputs lie in. Outputs that had storage of their own must keep it.
class OutputStorage {
 public:
  explicit OutputStorage(const Graph &graph) : graph_(graph) {
    for (const GraphOutput &output : graph.outputs()) roots_.insert(graph.storage_of(output.value));
  }
  bool would_join(const Node &a, const Node &b) const {
    const ValueId x = graph_.storage_of({a.id, 0}), y = graph_.storage_of({b.id, 0});
    return x != y && roots_.contains(x) && roots_.contains(y);
  }
  void merge(const Node &from, const Node &to) {
    if (roots_.contains(graph_.storage_of({from.id, 0}))) roots_.insert(graph_.storage_of({to.id, 0}));
  }

 private:
  const Graph &graph_;
  std::set<ValueId> roots_;
};

// Returns how many nodes were merged into others. Nodes stay where they are while the edit replaces values, and what a
// node reads has been merged when its turn comes.
Result<uint64_t> merge(Edit &edit) {
  OutputStorage outputs(edit.view());
  std::unordered_map<uint64_t, std::vector<const Node *>> seen;  // by hash
  uint64_t count = 0;
  for (const Node &node : edit.view().nodes()) {
    if (!mergeable(node)) continue;
    std::vector<const Node *> &bucket = seen[hash_of(node)];
    const auto first = std::ranges::find_if(bucket, [&](const Node *other) { return same(*other, node); });
    if (first == bucket.end() || outputs.would_join(node, **first)) {
      bucket.push_back(&node);
      continue;
    }
    outputs.merge(node, **first);
    for (uint32_t i = 0; i < node.results.size(); ++i) KILN_TRY(edit.replace({node.id, i}, {(*first)->id, i}));
    ++count;
  }
  return count;
}

}  // namespace

Pass cse_pass() {
  return {.name = "cse", .stage = Stage::post_grad, .run = [](PassContext &context) -> Status {
            KILN_ASSIGN(context.rewrites, merge(context.edit));
            context.done = true;
            return {};
          }};
}

Result<GraphPtr> merge_equal_nodes(GraphPtr graph) {
  Edit edit(std::move(graph));
  KILN_TRY(merge(edit).status());
  return edit.finish(false);
}

}  // namespace kiln
