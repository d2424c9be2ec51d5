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

// What becomes of a node. Those of one color are alike, and go together as far as others allow; 0 stays alone.
struct Cut {
  uint32_t color = 0;
  Region::Kind kind = Region::Kind::code;
  std::optional<std::string> name = {};
  RegionOptions options = {};
};

class Partitioner {
 public:
  // `cuts` are of op nodes, in their order; `rest` is what arguments become that must be made dense. Nodes of code keep
  // all annotations, others those that `keeps` names.
  using Keeps = bool (*)(std::string_view annotation);
  Partitioner(const Graph &graph, const std::string &backend, std::vector<Cut> cuts, Region::Kind rest, Keeps keeps)
      : graph_(graph), backend_(backend), cuts_(std::move(cuts)), rest_(rest), keeps_(keeps) {}

  Result<std::vector<Region>> run() {
    find_groups();
    find_crossing();
    std::vector<Region> regions;
    KILN_TRY(add_code(front_, regions));
    for (uint32_t group = 0; group < members_.size(); ++group) {
      if (group == front_) continue;
      if (is_step(group)) {
        KILN_ASSIGN(regions.emplace_back(), step(group));
      } else {
        KILN_TRY(add_code(group, regions));
      }
    }
    return regions;
  }

  // Those of nodes of a color alone, which keep the names of values; more than one where others lie between.
  Result<std::vector<Region>> colored() {
    keeps_names_ = true;
    find_groups();
    front_ = none;
    find_crossing();
    std::vector<Region> regions;
    for (uint32_t group = 0; group < members_.size(); ++group)
      if (group_cuts_[group]->color != 0) KILN_TRY(add_code(group, regions));
    return regions;
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  static bool mutates(const Node &node) { return node.op && (node.op->flags & op_flags::mutates); }

  void find_groups() {
    std::vector<const Node *> nodes;
    std::vector<uint32_t> places(graph_.next_id(), none);  // by id
    std::vector<std::vector<uint32_t>> uses;
    uint32_t writer = none;  // the last that writes inputs; these come behind all others
    for (const Node &node : graph_.nodes()) {
      if (node.kind != Node::Kind::op) continue;
      std::vector<uint32_t> &used = uses.emplace_back();
      for (ValueId input : node.inputs)
        if (places[input.node] != none) used.push_back(places[input.node]);
      for (const Node *resolver : graph_.resolvers_for(node)) used.push_back(places[resolver->id]);
      if (mutates(node)) {  // what writes inputs runs when all that reads them has
        if (writer == none)
          for (uint32_t place = 0; place < nodes.size(); ++place) used.push_back(place);
        else
          used.push_back(writer);
        writer = static_cast<uint32_t>(nodes.size());
      }
      places[node.id] = static_cast<uint32_t>(nodes.size());
      nodes.push_back(&node);
    }
    std::vector<uint32_t> colors;
    for (const Cut &cut : cuts_) colors.push_back(cut.color);
    const Grouping grouping = group(uses, colors);
    group_cuts_.resize(grouping.count);
    members_.resize(grouping.count);
    groups_.resize(graph_.next_id(), none);
    std::vector<bool> waits(grouping.count);
    for (size_t place = 0; place < nodes.size(); ++place) {
      const uint32_t group = grouping.group_of[place];
      groups_[nodes[place]->id] = group;
      group_cuts_[group] = &cuts_[place];
      members_[group].push_back(nodes[place]);
      for (const uint32_t used : uses[place]) waits[group] = waits[group] || grouping.group_of[used] != group;
    }
    if (rest_ == Region::Kind::part) return;
    // All code is of one color, so that one at most waits for nothing; of pieces several may, and the first is taken.
    for (uint32_t group = 0; group < grouping.count && front_ == none; ++group)
      if (!waits[group] && !is_step(group)) front_ = group;
  }

  // Whether the group is one node that is not compiled, but run as a step.
  bool is_step(uint32_t group) const {
    return group_cuts_[group]->kind == Region::Kind::control || group_cuts_[group]->kind == Region::Kind::reference;
  }
  bool is_step(const Node &node) const { return node.kind == Node::Kind::op && is_step(groups_[node.id]); }

  // Arguments and constants are read where they are, in any region; the first copies those that must be dense.
  bool is_made(ValueId value) const { return graph_.find(value.node)->kind == Node::Kind::op; }
  bool is_dense_argument(ValueId value) const {
    const Node &node = *graph_.find(value.node);
    return node.kind != Node::Kind::constant && node.results[0].strides == row_major_strides(node.results[0].dims);
  }

  // The values that code yields to other regions.
  void find_crossing() {
    crossing_.resize(graph_.next_id());
    for (const Node &node : graph_.nodes()) {
      for (ValueId input : node.inputs) {
        if (is_made(input) ? groups_[input.node] != groups_[node.id] : is_step(node) && !is_dense_argument(input))
          note_crossing(input);
      }
    }
    for (const GraphOutput &output : graph_.outputs()) note_crossing(output.value);
  }
  void note_crossing(ValueId value) {
    const Node &node = *graph_.find(value.node);
    if (is_step(node)) return;
    crossing_[node.id].resize(node.results.size());
    crossing_[node.id][value.output] = true;
  }

  Result<Region> step(uint32_t group) const {
    const Node &node = *members_[group][0];
    Region region{.kind = group_cuts_[group]->kind, .backend = backend_, .node = node.id, .inputs = node.inputs};
    for (uint32_t k = 0; k < node.results.size(); ++k) region.outputs.push_back({node.id, k});
    if (region.kind == Region::Kind::reference) {
      KILN_ASSIGN(region.graph, by_itself(node));
    }
    return region;
  }

  // A graph of the node alone, of which neither names nor layout tell where it stood.
  Result<GraphPtr> by_itself(const Node &node) const {
    Edit edit;
    std::set<std::string> used;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      const TensorType &type = graph_.type(input);
      for (const Dim &dim : type.dims) dim.collect_symbols(used);
      KILN_ASSIGN(inputs.emplace_back(), edit.input(str_cat("x", inputs.size()), make_type(type.dtype, type.dims)));
    }
    for (const std::string &symbol : used)
      if (const auto known = graph_.symbols().find(symbol); known != graph_.symbols().end())
        KILN_TRY(edit.declare_symbol(symbol, known->second));
    KILN_ASSIGN(const uint32_t id, edit.add(node.op, inputs, node.attrs, node.op->name));
    std::vector<GraphOutput> outputs;
    for (uint32_t k = 0; k < node.results.size(); ++k) outputs.push_back({str_cat("y", k), {id, k}});
    KILN_TRY(edit.set_outputs(std::move(outputs)));
    return edit.finish();
  }

  // A name that no node of the whole graph has, or that of the node itself, which lies elsewhere. Parts that are equal
  // but for names are to be equal, so that they name what comes in by its place.
  std::string name_of(ValueId value, size_t place) const {
    const std::string &name = graph_.find(value.node)->name;
    const bool by_place = rest_ != Region::Kind::code && !keeps_names_;
    if (!by_place && value.output == 0) return name;
    std::string other = by_place ? str_cat("in", place) : str_cat(name, "_", value.output);
    while (graph_.find(other)) other += "_";
    return other;
  }
  // Without those of Kiln's that have been heeded: parts may be equal but for them.
  AttrMap annotations_of(const Node &node) const {
    AttrMap annotations = node.annotations;
    std::erase_if(annotations, [&](const auto &annotation) { return !keeps_(annotation.first); });
    return annotations;
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

    Region region{.kind = rest_, .backend = backend_, .outputs = crossing};
    if (group != none) {
      region.name = group_cuts_[group]->name;
      region.options = group_cuts_[group]->options;
    }
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
        KILN_ASSIGN(made, edit.parameter(name_of(value, values.size()), node.results[0]));
        region.parameters.push_back(value);
      } else {
        KILN_ASSIGN(made, edit.input(name_of(value, values.size()), type_of(value)));
        region.inputs.push_back(value);
      }
      return values[value] = made;
    };
    for (const Node *node : members) {
      std::vector<ValueId> operands;
      for (ValueId input : node->inputs) {
        KILN_ASSIGN(operands.emplace_back(), value_of(input));
      }
      KILN_ASSIGN(const uint32_t id, edit.add(node->op, operands, node->attrs, node->name, annotations_of(*node)));
      for (uint32_t k = 0; k < node->results.size(); ++k) values[{node->id, k}] = {id, k};
    }
    std::vector<GraphOutput> outputs;
    for (ValueId value : crossing) {
      KILN_ASSIGN(const ValueId inside, value_of(value));
      outputs.push_back({keeps_names_ ? name_of(value, 0) : str_cat("output", outputs.size()), inside});
    }
    if (rest_ == Region::Kind::piece) KILN_TRY(hand_in_sizes(members, region, edit));
    KILN_TRY(edit.set_outputs(std::move(outputs)));
    KILN_ASSIGN(region.graph, edit.finish(false));
    regions.push_back(std::move(region));
    return {};
  }

  // A piece is a graph of its own: each size that it speaks of is a dim of an input by itself, if need be of one that
  // is there for nothing else.
  Status hand_in_sizes(std::span<const Node *const> members, const Region &region, Edit &edit) const {
    std::set<std::string> used, known;
    for (const Node *node : members) {
      for (const std::string &symbol : symbols_of(*node)) used.insert(symbol);
      for (const ResolvedSymbol &symbol : node->symbols) known.insert(symbol.name);
    }
    for (const auto *values : {&region.inputs, &region.parameters, &region.outputs})
      for (const ValueId value : *values) {
        const TensorType type = type_of(value);
        for (const auto *sizes : {&type.dims, &type.strides})
          for (const Dim &dim : *sizes) dim.collect_symbols(used);
      }
    for (const ValueId value : region.inputs)
      for (const Dim &dim : graph_.type(value).dims)
        if (dim.kind() == Dim::Kind::symbol) known.insert(dim.symbol_name());
    for (const std::string &symbol : used) {
      if (known.contains(symbol)) continue;
      const TensorType type = make_type(DType::boolean, {Expr::symbol(symbol)});
      std::string name = str_cat("size.", symbol);
      while (edit.view().find(name)) name += "_";
      KILN_TRY(edit.input(name, type).status());
    }
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
      for (uint32_t k = 0; k < crossing_[node->id].size(); ++k)
        if (crossing_[node->id][k]) values.push_back({node->id, k});
    return values;
  }

  // An argument's as it is, of any other value row-major.
  TensorType type_of(ValueId value) const {
    const TensorType &type = graph_.type(value);
    return is_made(value) ? make_type(type.dtype, type.dims) : type;
  }

  const Graph &graph_;
  const std::string &backend_;
  const std::vector<Cut> cuts_;
  const Region::Kind rest_;
  const Keeps keeps_;
  bool keeps_names_ = false;  // of values that cross borders, as names of inputs and outputs
  std::vector<const Cut *> group_cuts_;
  std::vector<uint32_t> groups_;                    // by id of op nodes
  std::vector<std::vector<const Node *>> members_;  // of each group
  uint32_t front_ = none;                           // the group of code that needs nothing of others
  std::vector<std::vector<bool>> crossing_;         // by id and result: what others or outputs need; empty: none
};

std::vector<const Node *> ops_of(const Graph &graph) {
  std::vector<const Node *> nodes;
  for (const Node &node : graph.nodes())
    if (node.kind == Node::Kind::op) nodes.push_back(&node);
  return nodes;
}

bool keeps_all(std::string_view) { return true; }
bool keeps_users(std::string_view annotation) { return !annotation.starts_with("kiln."); }
bool keeps_marks(std::string_view annotation) { return annotation != "kiln.cut"; }

// Whether the node can be a graph of its own that reference kernels run: its operands tell all sizes that it speaks of.
bool runs_as_reference(const Graph &graph, const Node &node) {
  if (node.op->flags & op_flags::mutates || !node.symbols.empty()) return false;
  std::set<std::string> used = symbols_of(node), bound;
  for (const ValueId input : node.inputs)
    for (const Dim &dim : graph.type(input).dims) {
      dim.collect_symbols(used);
      if (dim.kind() == Dim::Kind::symbol) bound.insert(dim.symbol_name());
    }
  return std::ranges::includes(bound, used);
}

// What a node becomes that no region has.
Region::Kind fallback_of(const Graph &graph, const Node &node, Fallback fallback) {
  if (is_control(node)) return Region::Kind::control;
  const bool by_reference = fallback == Fallback::reference && runs_as_reference(graph, node);
  return by_reference ? Region::Kind::reference : Region::Kind::part;
}

}  // namespace

Result<std::vector<Region>> partition(const GraphPtr &graph, const std::string &backend) {
  if (std::ranges::none_of(graph->nodes(), is_control)) return std::vector<Region>{whole_graph(graph, backend)};
  std::vector<Cut> cuts;
  for (const Node *node : ops_of(*graph))
    cuts.push_back(is_control(*node) ? Cut{.kind = Region::Kind::control} : Cut{.color = 1});
  return Partitioner(*graph, backend, std::move(cuts), Region::Kind::code, keeps_all).run();
}

Result<std::vector<Region>> partition(const GraphPtr &graph, const std::string &backend, const Modes &modes,
                                      const RegionChoices &choices) {
  const std::vector<const Node *> nodes = ops_of(*graph);
  std::vector<Cut> cuts;
  std::map<std::pair<std::string, RegionOptions>, uint32_t> colors;  // in an order that is not that of the nodes
  for (const Node *node : nodes) {
    Cut &cut = cuts.emplace_back(Cut{.kind = Region::Kind::part, .name = region_of(*node, modes)});
    cut.options = cut.name ? choices.at(*node, *cut.name) : choices.base();
    if (cut.name) colors.try_emplace({*cut.name, cut.options});
  }
  uint32_t last = 0;
  for (auto &[region, color] : colors) color = ++last;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Cut &cut = cuts[i];
    if (!cut.name)
      cut.kind = fallback_of(*graph, *nodes[i], modes.fallback);
    else if (!is_call(*nodes[i]))
      cut.color = colors.at({*cut.name, cut.options});
  }
  return Partitioner(*graph, backend, std::move(cuts), Region::Kind::part, keeps_users).run();
}

Result<std::vector<Region>> partition(const GraphPtr &graph, const std::string &backend, const Modes &modes,
                                      std::span<const uint32_t> piece_of) {
  std::vector<Cut> cuts;
  for (const uint32_t piece : piece_of) cuts.push_back({.color = piece + 1, .kind = Region::Kind::piece});
  const auto keeps = modes.cut() ? keeps_marks : keeps_users;
  return Partitioner(*graph, backend, std::move(cuts), Region::Kind::piece, keeps).run();
}

Result<std::vector<Region>> cut_out(const Graph &graph, const std::vector<bool> &members) {
  std::vector<Cut> cuts;
  for (const bool is_member : members) cuts.push_back({.color = is_member, .kind = Region::Kind::piece});
  return Partitioner(graph, "", std::move(cuts), Region::Kind::piece, keeps_all).colored();
}

}  // namespace kiln
