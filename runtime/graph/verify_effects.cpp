// What tokens say of the order of effects, before and after a pass.
#include <algorithm>
#include <bitset>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {
namespace {

using Nodes = std::vector<const Node *>;

// The nodes whose tokens the values are, and by theirs those before them, as far as visit(node) says so.
template <class Visit>
void go_back(const Graph &graph, std::vector<ValueId> values, Visit visit) {
  std::set<uint32_t> seen;
  while (!values.empty()) {
    const ValueId value = values.back();
    values.pop_back();
    if (graph.type(value).dtype != DType::token || !seen.insert(value.node).second) continue;
    const Node &before = *graph.find(value.node);
    if (visit(before)) values.insert(values.end(), before.inputs.begin(), before.inputs.end());
  }
}

std::vector<ValueId> values_of(const Graph &graph) {
  std::vector<ValueId> values;
  for (const GraphOutput &output : graph.outputs()) values.push_back(output.value);
  return values;
}

// Of some nodes, a bit each, those that nodes come after by tokens: in one walk, for a stretch of them at a time.
class After {
 public:
  static constexpr size_t stretch = 4096;
  using Bits = std::bitset<stretch>;
  After(const Graph &graph, std::span<const Node *const> nodes) {
    std::map<uint32_t, size_t> place;
    for (size_t i = 0; i < nodes.size(); ++i) place[nodes[i]->id] = i;
    for (const Node &node : graph.nodes()) {
      Bits bits = of(graph, node.inputs);
      if (const auto own = place.find(node.id); own != place.end()) bits.set(own->second);
      if (bits.any()) bits_.emplace(node.id, bits);
    }
  }
  Bits of(const Graph &graph, std::span<const ValueId> values) const {
    Bits all;
    for (const ValueId value : values)
      if (const auto known = bits_.find(value.node); known != bits_.end() && graph.type(value).dtype == DType::token)
        all |= known->second;
    return all;
  }

 private:
  std::map<uint32_t, Bits> bits_;
};

Status effect_broken_at(const Node &node, std::string_view what, std::string_view other = {}) {
  return error(Code::invariant, "invariant 'effects' broken at node '", node.name, "' [", node.op->name, "]: ", what,
               other)
      .with_node(node.name);
}

// Who comes after kept nodes in `before`, and must in `after`.
struct Follower {
  std::vector<ValueId> before, after;  // its tokens, with other values
  const Node *node;                    // null: the graph's end, of one that a node carries
};

}  // namespace

Status verify_same_effects(const Graph &before, const Graph &after, bool may_leave_out) {
  std::map<uint32_t, size_t> place;  // in `kept`, by id in `before`
  Nodes kept;                        // of `after`
  std::vector<Follower> followers;
  for (const Node &node : before.nodes()) {
    if (!has_effect(node)) continue;
    const Node *now = after.find(node.name);
    if (now && now->op == node.op) {
      place[node.id] = kept.size();
      kept.push_back(now);
      followers.push_back({node.inputs, now->inputs, now});
    } else if (!may_leave_out) {
      return effect_broken_at(node, "it has an effect, and is gone; an edit takes it out that replaces its token");
    }
  }
  followers.push_back({values_of(before), values_of(after), nullptr});
  for (size_t first = 0; first < kept.size(); first += After::stretch) {
    const std::span<const Node *const> some =
        std::span(kept).subspan(first, std::min(After::stretch, kept.size() - first));
    const After order(after, some);
    for (const Follower &follower : followers) {
      const After::Bits has = order.of(after, follower.after);
      const Node *lost = nullptr;
      go_back(before, follower.before, [&](const Node &earlier) {
        const auto known = place.find(earlier.id);
        if (known == place.end()) return true;
        const size_t k = known->second;
        if (k >= first && k < first + some.size() && !has.test(k - first)) lost = kept[k];
        return false;
      });
      if (lost && follower.node)
        return effect_broken_at(*follower.node, "by their tokens it came after ",
                                str_cat("'", lost->name, "', and does not any more"));
      if (lost) return effect_broken_at(*lost, "by the tokens that the graph yields what follows it came after this");
    }
  }
  return {};
}

}  // namespace kiln
