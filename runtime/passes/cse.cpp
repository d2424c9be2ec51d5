#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

bool is_debug(std::string_view key) { return key.starts_with("debug."); }

// Whether two maps are equal, debug.* aside. Both are sorted, so one walk does.
bool same_annotations(const AttrMap &a, const AttrMap &b) {
  auto skip = [](AttrMap::const_iterator at, const AttrMap &map) {
    while (at != map.end() && is_debug(at->first)) ++at;
    return at;
  };
  auto i = skip(a.begin(), a), j = skip(b.begin(), b);
  while (i != a.end() && j != b.end() && *i == *j) i = skip(++i, a), j = skip(++j, b);
  return i == a.end() && j == b.end();
}

bool mergeable(const Node &node) {
  if (node.kind == Node::Kind::constant) return true;
  constexpr uint32_t kept = op_flags::random | op_flags::effect | op_flags::mutates;
  return node.kind == Node::Kind::op && !(node.op->flags & kept);
}

// `inputs` are the node's with what was merged so far in place.
uint64_t hash_of(const Node &node, std::span<const ValueId> inputs) {
  ByteWriter bytes;
  bytes.put(static_cast<uint8_t>(node.kind));
  if (node.constant) bytes.put(checksum_of(node.constant->bytes));
  if (node.op) bytes.text(node.op->name);
  for (ValueId input : inputs) bytes.put(input.packed());
  for (const auto &[name, value] : node.attrs) bytes.text(value.text());
  return checksum_of(bytes.bytes());
}

struct Seen {
  const Node *node;
  std::vector<ValueId> inputs;
};

bool same(const Seen &a, const Seen &b) {
  if (a.node->kind != b.node->kind || a.node->op != b.node->op || a.inputs != b.inputs) return false;
  if (a.node->constant && !(*a.node->constant == *b.node->constant)) return false;
  return a.node->attrs == b.node->attrs && same_annotations(a.node->annotations, b.node->annotations);
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

Status cse(PassContext &context) {
  const Graph graph = context.edit.view();  // a copy: the view changes with the edit
  OutputStorage outputs(graph);
  std::unordered_map<uint64_t, std::vector<Seen>> seen;
  std::map<ValueId, ValueId> merged;
  for (const Node &node : graph.nodes()) {
    if (!mergeable(node)) continue;
    Seen candidate{&node, node.inputs};
    for (ValueId &input : candidate.inputs) {
      if (auto found = merged.find(input); found != merged.end()) input = found->second;
    }
    std::vector<Seen> &bucket = seen[hash_of(node, candidate.inputs)];
    auto first = std::ranges::find_if(bucket, [&](const Seen &other) { return same(other, candidate); });
    if (first == bucket.end() || outputs.would_join(node, *first->node)) {
      bucket.push_back(std::move(candidate));
      continue;
    }
    outputs.merge(node, *first->node);
    for (uint32_t i = 0; i < node.results.size(); ++i) {
      KILN_TRY(context.edit.replace({node.id, i}, {first->node->id, i}));
      merged[{node.id, i}] = {first->node->id, i};
    }
    ++context.rewrites;
  }
  context.done = true;
  return {};
}

}  // namespace

Pass cse_pass() { return {.name = "cse", .stage = Stage::post_grad, .run = cse}; }

}  // namespace kiln
