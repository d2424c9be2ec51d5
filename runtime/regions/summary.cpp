#include "runtime/regions/summary.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "runtime/ops/nested.h"
#include "runtime/ops/registered.h"

namespace kiln {
namespace {

// The nodes of `graph`, which is cut, that are in that region.
std::vector<const Node *> members(const Graph &graph, const Region &region) {
  if (region.kind != Region::Kind::part && region.kind != Region::Kind::program) return {graph.find(region.node)};
  std::vector<const Node *> nodes;
  for (const uint32_t id : region.nodes) nodes.push_back(graph.find(id));
  return nodes;
}

std::string why_refused(const Node &node) { return makes_token(node) || has_effect(node) ? "effect" : "unsupported"; }

class Summarizer {
 public:
  Summarizer(const LoweredGraphs &graphs, const Modes &modes) : graphs_(graphs), modes_(modes) {}

  PartitionSummary run() {
    out_.mode = described(modes_);
    add(0, "");
    if (modes_.wants_marks() && out_.parts.empty())
      out_.warnings.emplace_back(has_marks_ ? "all nodes that are marked for a region fall back" : nothing_marked);
    return std::move(out_);
  }

 private:
  void add(size_t number, const std::string &prefix) {
    if (!seen_.insert(number).second) return;
    const LoweredGraph &whole = graphs_.graphs[number];
    std::map<uint32_t, size_t> region_of;  // by node
    for (size_t r = 0; r < whole.regions.size(); ++r)
      for (const Node *node : members(*whole.graph, whole.regions[r].region)) region_of[node->id] = r;
    std::map<std::string, std::vector<size_t>> by_name;
    for (size_t r = 0; r < whole.regions.size(); ++r) {
      const Region &region = whole.regions[r].region;
      const std::vector<const Node *> nodes = members(*whole.graph, region);
      if (nodes.empty()) continue;  // arguments alone
      for (const Region::Declined &d : region.declined) {
        const Node &node = *whole.graph->find(d.node);
        out_.declined.push_back({prefix + node.name, std::string(node.op->name), d.backend, d.why});
      }
      if (region.name) {
        add_part(whole, region, nodes, prefix);
        std::vector<size_t> &before = by_name[*region.name];
        if (!before.empty() && (!region.name->empty() || !modes_.cut())) add_split(whole, region_of, before, r, prefix);
        before.push_back(r);
      } else {
        add_fallback(*whole.graph, region, *nodes[0], prefix);
      }
      if (region.kind != Region::Kind::control) continue;
      for (const auto &[attr, nested] : nested_graphs(*nodes[0]))
        add(graphs_.number_of(whole, nested), str_cat(prefix, nodes[0]->name, ".", attr, "."));
    }
  }

  void add_part(const LoweredGraph &whole, const Region &region, const std::vector<const Node *> &nodes,
                const std::string &prefix) {
    PartitionSummary::Part part{
        .region = *region.name, .backend = region.backend, .options = differences(region.options, whole.options)};
    for (const Node *node : nodes) part.nodes.push_back(prefix + node->name);
    part.inputs = values(*whole.graph, region.inputs, prefix);
    for (std::string &parameter : values(*whole.graph, region.parameters, prefix))
      part.inputs.push_back(std::move(parameter));
    part.outputs = values(*whole.graph, region.outputs, prefix);
    std::pair<size_t, const Graph *> same(0, region.graph.get());
    if (region.kind == Region::Kind::part) {
      same = {graphs_.number_of(whole, region.graph), nullptr};
      part.kernels = kernels(same.first);
    }
    const auto [first, is_new] = first_of_.try_emplace(same, out_.parts.size());
    if (!is_new) part.same_as = first->second;
    out_.parts.push_back(std::move(part));
  }

  static std::vector<std::string> values(const Graph &graph, std::span<const ValueId> ids, const std::string &prefix) {
    std::vector<std::string> names;
    for (const ValueId id : ids)
      names.push_back(str_cat(prefix, graph.find(id.node)->name, id.output ? str_cat(":", id.output) : ""));
    return names;
  }

  // With those of graphs that it carries, each once.
  uint64_t kernels(size_t number) const {
    uint64_t count = 0;
    for (const size_t reached : graphs_.reached_from(number))
      for (const LoweredRegion &region : graphs_.graphs[reached].regions) count += region.fused.launches.size();
    return count;
  }

  void add_fallback(const Graph &graph, const Region &region, const Node &node, const std::string &prefix) {
    const bool is_named = !function_of(node).empty();
    const bool is_wanted = !is_named && !region.refused.empty() && region_of(node, modes_).has_value();
    const bool marked = is_named || node.annotations.contains("kiln.fallback");
    has_marks_ |= node.annotations.contains("kiln.region");
    const bool of_backward = node.annotations.contains("kiln.phase");
    const bool none = (of_backward ? modes_.backward : modes_.forward) == Mode::none;
    out_.fallbacks.push_back({.node = prefix + node.name,
                              .op = std::string(node.op->name),
                              .inputs = values(graph, node.inputs, prefix),
                              .by = region.kind == Region::Kind::control     ? "steps"
                                    : !region.function.empty()               ? region.function
                                    : runs_itself(node)                      ? "function"
                                    : region.kind == Region::Kind::reference ? "reference"
                                                                             : "kernel",
                              .why = is_wanted ? why_refused(node)
                                     : none    ? "mode"
                                     : marked  ? "marked"
                                               : "unmarked",
                              .reason = region.refused});
  }

  // Goes back from region `r` until it comes to one of those `before`: what it began with keeps them apart.
  void add_split(const LoweredGraph &whole, const std::map<uint32_t, size_t> &region_of,
                 const std::vector<size_t> &before, size_t r, const std::string &prefix) {
    const Graph &graph = *whole.graph;
    const std::vector<const Node *> nodes = members(graph, whole.regions[r].region);
    const std::string &region = *whole.regions[r].region.name;
    const auto is_one_call = [&](size_t other) {
      const std::vector<const Node *> there = members(graph, whole.regions[other].region);
      return there.size() == 1 && is_call(*there[0]);
    };
    if (is_one_call(before.back()) || is_one_call(r)) {
      const size_t call = is_one_call(before.back()) ? before.back() : r;
      const Node &node = *members(graph, whole.regions[call].region)[0];
      out_.splits.push_back({region, prefix + nodes[0]->name, "call", prefix + node.name});
      return;
    }
    const auto is_like = [&](size_t other) {
      return whole.regions[other].region.options == whole.regions[r].region.options;
    };
    if (std::ranges::none_of(before, is_like)) {
      const Region &last = whole.regions[before.back()].region;
      const bool same_backend = last.backend == whole.regions[r].region.backend;
      out_.splits.push_back({region, prefix + nodes[0]->name, same_backend ? "options" : "backend",
                             prefix + members(graph, last)[0]->name});
      return;
    }
    // Of those that are made in another way there is no question.
    const auto is_before = [&](size_t other) {
      return std::ranges::find(before, other) != before.end() && is_like(other);
    };
    for (const Node *node : nodes) {
      for (const ValueId input : node->inputs) {
        const Node &between = *graph.find(input.node);
        if (between.kind != Node::Kind::op || region_of.at(between.id) == r || is_before(region_of.at(between.id)))
          continue;
        if (!reaches(graph, region_of, between, is_before)) continue;
        const Region &there = whole.regions[region_of.at(between.id)].region;
        const std::string_view why = !there.name ? "unmarked" : *there.name == region ? "backend" : "name";
        out_.splits.push_back({region, prefix + node->name, std::string(why), prefix + between.name});
        if (!there.refused.empty()) {
          PartitionSummary::Split &split = out_.splits.back();
          split.why = why_refused(between);
          split.op = between.op->name;
          split.reason = there.refused;
        }
        return;
      }
    }
    const size_t last = *std::ranges::find_if(std::views::reverse(before), is_like);
    const std::vector<const Node *> first = members(graph, whole.regions[last].region);
    out_.splits.push_back({region, prefix + nodes[0]->name, "cycle", prefix + first[0]->name});
  }

  template <class IsBefore>
  static bool reaches(const Graph &graph, const std::map<uint32_t, size_t> &region_of, const Node &from,
                      const IsBefore &is_before) {
    std::set<uint32_t> seen{from.id};
    std::vector<const Node *> open{&from};
    while (!open.empty()) {
      const Node &node = *open.back();
      open.pop_back();
      for (const ValueId input : node.inputs) {
        const Node &source = *graph.find(input.node);
        if (source.kind != Node::Kind::op || !seen.insert(source.id).second) continue;
        if (is_before(region_of.at(source.id))) return true;
        open.push_back(&source);
      }
    }
    return false;
  }

  const LoweredGraphs &graphs_;
  const Modes &modes_;
  PartitionSummary out_;
  bool has_marks_ = false;  // a node that falls back is marked for a region
  std::set<size_t> seen_;   // graphs
  // The first part of each graph: by its number, of a program itself.
  std::map<std::pair<size_t, const Graph *>, size_t> first_of_;
};

}  // namespace

std::optional<PartitionSummary> summarize(const LoweredGraphs &graphs, const Modes &modes) {
  if (!graphs.cut) return std::nullopt;
  return Summarizer(graphs, modes).run();
}

}  // namespace kiln
