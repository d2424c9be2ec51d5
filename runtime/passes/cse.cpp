#include <algorithm>
#include <unordered_map>

#include "runtime/graph/annotations.h"
#include "runtime/passes/builtin.h"
#include "runtime/passes/replacing.h"

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

// Returns how many nodes were merged into others. Nodes stay where they are while the edit replaces values, and what a
// node reads has been merged when its turn comes.
Result<uint64_t> merge(Edit &edit) {
  OutputStorage outputs(edit);
  std::unordered_map<uint64_t, std::vector<const Node *>> seen;  // by hash
  uint64_t count = 0;
  for (size_t at = 0; at < edit.view().nodes().size(); ++at) {
    const Node &node = edit.view().nodes()[at];
    if (!mergeable(node)) continue;
    std::vector<const Node *> &bucket = seen[hash_of(node)];
    const auto first = std::ranges::find_if(bucket, [&](const Node *other) { return same(*other, node); });
    if (first == bucket.end() || !outputs.allows({node.id, 0}, {(*first)->id, 0})) {
      bucket.push_back(&node);
      continue;
    }
    outputs.replaced({node.id, 0}, {(*first)->id, 0});
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
  Edit edit(graph);
  KILN_TRY(merge(edit).status());
  return edit.has_changed() ? edit.finish(false) : graph;
}

}  // namespace kiln
