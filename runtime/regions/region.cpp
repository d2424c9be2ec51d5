#include "runtime/regions/region.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/graph/edit.h"
#include "runtime/ops/nested.h"
#include "runtime/regions/grouping.h"

namespace kiln {
namespace {

Region whole_graph(const GraphPtr &graph, const std::string &backend) {
  Region region{.backend = backend, .graph = graph};
  for (uint32_t id : graph->inputs()) region.inputs.push_back({id, 0});
  for (uint32_t id : graph->parameters()) region.parameters.push_back({id, 0});
  for (const GraphOutput &output : graph->outputs()) region.outputs.push_back(output.value);
  return region;
}

// What makes code goes together as far as control nodes allow, each of which is a region of its own.
class Partitioner {
 public:
  Partitioner(const Graph &graph, const std::string &backend) : graph_(graph), backend_(backend) {}

  Result<std::vector<Region>> run() {
    find_groups();
    find_crossing();
    std::vector<Region> regions;
    KILN_TRY(add_code(front_, regions));
    for (uint32_t group = 0; group < members_.size(); ++group) {
      if (group == front_) continue;
      if (is_control(*members_[group][0])) {
        regions.push_back(control(*members_[group][0]));
      } else {
        KILN_TRY(add_code(group, regions));
      }
    }
    return regions;
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  static bool mutates(const Node &node) { return node.op && (node.op->flags & op_flags::mutates); }

  void find_groups() {
    std::vector<const Node *> nodes;
    std::map<uint32_t, uint32_t> places;  // by id
    std::vector<std::vector<uint32_t>> uses;
    std::vector<uint32_t> colors;
    uint32_t writer = none;  // the last that writes inputs; these come behind all others
    for (const Node &node : graph_.nodes()) {
      if (node.kind != Node::Kind::op) continue;
      std::vector<uint32_t> &used = uses.emplace_back();
      for (ValueId input : node.inputs)
        if (const auto place = places.find(input.node); place != places.end()) used.push_back(place->second);
      for (const Node *resolver : graph_.resolvers_for(node)) used.push_back(places.at(resolver->id));
      if (mutates(node)) {  // what writes inputs runs when all that reads them has
        if (writer == none)
          for (uint32_t place = 0; place < nodes.size(); ++place) used.push_back(place);
        else
          used.push_back(writer);
        writer = static_cast<uint32_t>(nodes.size());
      }
      colors.push_back(is_control(node) ? 0 : 1);
      places[node.id] = static_cast<uint32_t>(nodes.size());
      nodes.push_back(&node);
    }
    const Grouping grouping = group(uses, colors);
    members_.resize(grouping.count);
    std::vector<bool> waits(grouping.count);
    for (size_t place = 0; place < nodes.size(); ++place) {
      const uint32_t group = grouping.group_of[place];
      groups_[nodes[place]->id] = group;
      members_[group].push_back(nodes[place]);
      for (const uint32_t used : uses[place]) waits[group] = waits[group] || grouping.group_of[used] != group;
    }
    for (uint32_t group = 0; group < grouping.count; ++group)
      if (!waits[group] && !is_control(*members_[group][0])) front_ = group;  // there is one such group at most
  }

  // Arguments and constants are read where they are, in any region; the first copies those that must be dense.
  bool is_made(ValueId value) const { return graph_.find(value.node)->kind == Node::Kind::op; }
  bool is_dense_argument(ValueId value) const {
    const Node &node = *graph_.find(value.node);
    return node.kind != Node::Kind::constant && node.results[0].strides == row_major_strides(node.results[0].dims);
  }

  // The values that code yields to other regions.
  void find_crossing() {
    for (const Node &node : graph_.nodes()) {
      for (ValueId input : node.inputs) {
        if (is_made(input) ? groups_.at(input.node) != groups_.at(node.id)
                           : is_control(node) && !is_dense_argument(input))
          note_crossing(input);
      }
    }
    for (const GraphOutput &output : graph_.outputs()) note_crossing(output.value);
  }
  void note_crossing(ValueId value) {
    if (!is_control(*graph_.find(value.node))) crossing_.insert(value);
  }

  Region control(const Node &node) const {
    Region region{.kind = Region::Kind::control, .backend = backend_, .node = node.id, .inputs = node.inputs};
    for (uint32_t k = 0; k < node.results.size(); ++k) region.outputs.push_back({node.id, k});
    return region;
  }

  // A name that no node of the whole graph has, or that of the node itself, which lies elsewhere.
  std::string name_of(ValueId value) const {
    const std::string &name = graph_.find(value.node)->name;
    if (value.output == 0) return name;
    std::string other = str_cat(name, "_", value.output);
    while (graph_.find(other)) other += "_";
    return other;
  }

  // The region of that group's nodes and, of the first, of arguments; `none` has no nodes. Nothing, if it has no
  // effect.
  Status add_code(uint32_t group, std::vector<Region> &regions) const {
    static const std::vector<const Node *> no_nodes;
    const std::vector<const Node *> &members = group == none ? no_nodes : members_[group];
    std::vector<ValueId> crossing = group == front_ ? crossing_of(arguments()) : std::vector<ValueId>();
    for (const ValueId value : crossing_of(members)) crossing.push_back(value);
    const bool writes_inputs = std::ranges::any_of(members, [](const Node *node) { return mutates(*node); });
    if (crossing.empty() && !writes_inputs) return {};

    Region region{.backend = backend_, .outputs = crossing};
    Edit edit;
    for (const auto &[name, info] : graph_.symbols()) KILN_TRY(edit.declare_symbol(name, info));
    std::map<ValueId, ValueId> values;
    const auto value_of = [&](ValueId value) -> Result<ValueId> {
      if (const auto known = values.find(value); known != values.end()) return known->second;
      const Node &node = *graph_.find(value.node);
      ValueId made;
      if (node.kind == Node::Kind::constant) {
        KILN_ASSIGN(made, edit.constant(node.constant, node.name));
      } else if (node.kind == Node::Kind::parameter) {
        KILN_ASSIGN(made, edit.parameter(node.name, node.results[0]));
        region.parameters.push_back(value);
      } else {
        KILN_ASSIGN(made, edit.input(name_of(value), type_of(value)));
        region.inputs.push_back(value);
      }
      return values[value] = made;
    };
    for (const Node *node : members) {
      std::vector<ValueId> operands;
      for (ValueId input : node->inputs) {
        KILN_ASSIGN(operands.emplace_back(), value_of(input));
      }
      KILN_ASSIGN(const uint32_t id, edit.add(node->op, operands, node->attrs, node->name, node->annotations));
      for (uint32_t k = 0; k < node->results.size(); ++k) values[{node->id, k}] = {id, k};
    }
    std::vector<GraphOutput> outputs;
    for (ValueId value : crossing) {
      KILN_ASSIGN(const ValueId inside, value_of(value));
      outputs.push_back({str_cat("output", outputs.size()), inside});
    }
    KILN_TRY(edit.set_outputs(std::move(outputs)));
    KILN_ASSIGN(region.graph, edit.finish(false));
    regions.push_back(std::move(region));
    return {};
  }

  std::vector<const Node *> arguments() const {
    std::vector<const Node *> nodes;
    for (const Node &node : graph_.nodes())
      if (node.kind != Node::Kind::op) nodes.push_back(&node);
    return nodes;
  }

  // In the order of their nodes.
  std::vector<ValueId> crossing_of(std::span<const Node *const> nodes) const {
    std::vector<ValueId> values;
    for (const Node *node : nodes)
      for (uint32_t k = 0; k < node->results.size(); ++k)
        if (crossing_.contains({node->id, k})) values.push_back({node->id, k});
    return values;
  }

  // An argument's as it is, of any other value row-major.
  TensorType type_of(ValueId value) const {
    const TensorType &type = graph_.type(value);
    return is_made(value) ? make_type(type.dtype, type.dims) : type;
  }

  const Graph &graph_;
  const std::string &backend_;
  std::map<uint32_t, uint32_t> groups_;             // by op node
  std::vector<std::vector<const Node *>> members_;  // of each group
  uint32_t front_ = none;                           // the group of code that needs nothing of others
  std::set<ValueId> crossing_;                      // what code makes for other regions and the outputs
};

}  // namespace

Result<std::vector<Region>> partition(const GraphPtr &graph, const std::string &backend) {
  if (std::ranges::none_of(graph->nodes(), is_control)) return std::vector<Region>{whole_graph(graph, backend)};
  return Partitioner(*graph, backend).run();
}

}  // namespace kiln
