#include "runtime/patterns/pattern_set.h"

#include <algorithm>
#include <set>

namespace kiln::patterns {
namespace {

uint64_t bit_of(const OpSchema *op) { return uint64_t{1} << (std::hash<std::string_view>()(op->name) % 64); }

// Nodes that nothing uses any more; a pass's edit still has them.
class Gone {
 public:
  explicit Gone(const Edit &edit) : edit_(edit) {}
  const std::vector<bool> &all() const { return gone_; }
  bool has(uint32_t id) const { return id < gone_.size() && gone_[id]; }

  // After a replacement: the match's nodes that have no use left, the last ones first, for these are uses of others.
  void drop_unused(const Pattern &pattern, const Place &place) {
    for (size_t i = pattern.terms.size(); i-- > 0;)
      if (pattern.terms[i].is_node() && place.values[i] && !is_used(place.values[i].node)) drop(place.values[i].node);
  }

 private:
  bool is_used(uint32_t id) const {
    const Graph &graph = edit_.view();
    const Node &node = *graph.find(id);
    for (uint32_t output = 0; output < node.results.size(); ++output) {
      uint32_t by_nodes = 0;
      for (const uint32_t user : graph.users({id, output})) {
        if (!has(user)) return true;
        by_nodes += static_cast<uint32_t>(std::ranges::count(graph.find(user)->inputs, ValueId{id, output}));
      }
      if (graph.use_count({id, output}) > by_nodes) return true;
    }
    return false;
  }
  void drop(uint32_t id) {
    if (id >= gone_.size()) gone_.resize(std::max<size_t>(id + 1, edit_.view().next_id()));
    gone_[id] = true;
  }

  const Edit &edit_;
  std::vector<bool> gone_;
};

}  // namespace

Result<PatternSet> PatternSet::make(std::vector<Pattern> patterns) {
  PatternSet set;
  set.patterns_ = std::move(patterns);
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < set.patterns_.size(); ++i) {
    const Pattern &pattern = set.patterns_[i];
    if (!names.insert(pattern.name).second) return invalid("two patterns are named '", pattern.name, "'");
    const Term &root = pattern.terms[pattern.root()];
    for (const OpSchema *op : std::set<const OpSchema *>(root.ops.begin(), root.ops.end()))
      set.by_root_[op].push_back({needed_by(pattern), i});
  }
  return set;
}

void PatternSet::ask_for_ops(const OpTable &ops) const {
  const auto ask = [&](const OpSchema *op) {
    if (op->flags & op_flags::registered) (void)ops.find(op->name);
  };
  for (const Pattern &pattern : patterns_) {
    for (const Term &term : pattern.terms) std::ranges::for_each(term.ops, ask);
    if (pattern.replacement)
      for (const MadeNode &node : pattern.replacement->nodes) ask(node.op);
  }
}

PatternSet::Around PatternSet::needed_by(const Pattern &pattern) {
  const auto certain = [&](const Operand &operand) {
    const Term &term = pattern.terms[operand.term];
    return term.ops.size() == 1 && !term.optional;
  };
  Around needed;
  for (const Operand &operand : pattern.terms[pattern.root()].operands) {
    if (!certain(operand)) continue;
    const Term &term = pattern.terms[operand.term];
    needed.operands |= bit_of(term.ops.front());
    for (const Operand &below : term.operands)
      if (certain(below)) needed.theirs |= bit_of(pattern.terms[below.term].ops.front());
  }
  return needed;
}

PatternSet::Around PatternSet::around(const Graph &graph, const Node &node) {
  Around found;
  for (const ValueId input : node.inputs) {
    const Node &operand = *graph.find(input.node);
    if (!operand.op) continue;
    found.operands |= bit_of(operand.op);
    for (const ValueId below : operand.inputs)
      if (const OpSchema *op = graph.find(below.node)->op) found.theirs |= bit_of(op);
  }
  return found;
}

Result<uint64_t> PatternSet::apply(Edit &edit, const Rewrite &rewrite, std::span<uint64_t> matches) const {
  std::vector<uint32_t> places;
  for (const Node &node : edit.view().nodes())
    if (node.op && by_root_.contains(node.op)) places.push_back(node.id);
  if (places.empty()) return 0;
  const Graph &graph = edit.begin();
  Gone gone(edit);
  Matcher matcher(graph, gone.all());
  uint64_t count = 0;
  for (const uint32_t id : places) {
    if (gone.has(id)) continue;
    const Node *node = graph.find(id);
    const Around found = around(graph, *node);
    for (const Entry &entry : by_root_.at(node->op)) {
      if (!found.covers(entry.needed)) continue;
      const Pattern &pattern = patterns_[entry.pattern];
      const std::optional<Place> place = matcher.match(pattern, *node);
      if (!place) continue;
      const std::string name = node->name;
      const auto blame = [&](Status status) {
        return std::move(status).with_prefix(str_cat("pattern '", pattern.name, "' at '", name, "': "));
      };
      Result<std::vector<ValueId>> made = rewrite(entry.pattern, *place);
      if (!made.ok()) return blame(made.take_status());
      node = graph.find(id);  // which the edit may have copied
      if (made->empty()) continue;
      for (size_t i = 0; i < made->size(); ++i) {
        const Operand &output = pattern.outputs[i];
        if (Status status = edit.replace({place->values[output.term].node, output.output}, (*made)[i]); !status.ok())
          return blame(std::move(status));
      }
      gone.drop_unused(pattern, *place);
      ++matches[entry.pattern];
      ++count;
      break;
    }
  }
  return count;
}

void PatternSet::explain(const Graph &graph, std::span<Explained> out) const {
  const std::vector<bool> none;
  for (const Node &node : graph.nodes()) {
    const auto entries = by_root_.find(node.op);
    if (!node.op || entries == by_root_.end()) continue;
    for (const Entry &entry : entries->second) {
      Explained &explained = out[entry.pattern];
      Miss miss;
      if (Matcher(graph, none, &miss).match(patterns_[entry.pattern], node))
        ++explained.found;
      else if (explained.closest.why.empty() || miss.met > explained.closest.met)
        explained.closest = std::move(miss);
    }
  }
}

}  // namespace kiln::patterns
