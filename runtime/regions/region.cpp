#include "runtime/regions/region.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "runtime/graph/annotations.h"
#include "runtime/graph/edit.h"
#include "runtime/ops/nested.h"
#include "runtime/ops/registered.h"
#include "runtime/regions/grouping.h"
#include "runtime/regions/writes.h"

namespace kiln {
namespace {

Region whole_graph(const GraphPtr &graph, const BackendInfo &backend) {
  Region region{.backend = std::string(backend.name), .graph = graph};
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
  std::string function = {}, refused = {};
};

class Partitioner {
 public:
  // `cuts` are of op nodes, in their order; `rest` is what arguments become that must be made dense. Nodes of code keep
  // all annotations, others those that `keeps` names.
  using Keeps = bool (*)(std::string_view annotation);
  Partitioner(const Graph &graph, std::string_view backend, std::vector<Cut> cuts, Region::Kind rest, Keeps keeps)
      : graph_(graph), backend_(backend), cuts_(std::move(cuts)), rest_(rest), keeps_(keeps) {}

  Result<std::vector<Region>> run() {
    find_dense();
    find_groups();
    find_once();
    find_crossing();
    std::vector<Region> regions;
    regions.reserve(group_cuts_.size() + 1);
    KILN_TRY(add_code(front_, regions));
    for (uint32_t group = 0; group < group_cuts_.size(); ++group) {
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
    find_dense();
    find_groups();
    front_ = none;
    find_once();
    find_crossing();
    std::vector<Region> regions;
    for (uint32_t group = 0; group < group_cuts_.size(); ++group)
      if (group_cuts_[group]->color != 0) KILN_TRY(add_code(group, regions));
    return regions;
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  static bool mutates(const Node &node) { return node.op && (node.op->flags & op_flags::mutates); }
  bool is_token(ValueId value) const { return graph_.type(value).dtype == DType::token; }
  bool is_parameter(ValueId value) const {
    return is_made(value) ? once_[value.node] : graph_.find(value.node)->kind == Node::Kind::parameter;
  }

  void find_groups() {
    std::vector<const Node *> nodes;
    std::vector<uint32_t> places(graph_.next_id(), none);  // by id
    Lists uses;
    std::vector<uint32_t> used;
    const ReadersOfWritten readers(graph_);
    for (const Node &node : graph_.nodes()) {
      if (node.kind != Node::Kind::op) continue;
      used.clear();
      for (ValueId input : node.inputs)
        if (places[input.node] != none) used.push_back(places[input.node]);
      for (const Node *resolver : graph_.resolvers_for(node)) used.push_back(places[resolver->id]);
      for (const uint32_t reader : readers.before(node)) used.push_back(places[reader]);
      uses.add(used);
      places[node.id] = static_cast<uint32_t>(nodes.size());
      nodes.push_back(&node);
    }
    std::vector<uint32_t> colors;
    colors.reserve(cuts_.size());
    for (const Cut &cut : cuts_) colors.push_back(cut.color);
    const Grouping grouping = group(uses, colors);
    group_cuts_.resize(grouping.count);
    group_begins_.resize(grouping.count + 1);
    for (const uint32_t group : grouping.group_of) ++group_begins_[group + 1];
    std::partial_sum(group_begins_.begin(), group_begins_.end(), group_begins_.begin());
    std::vector<uint32_t> next(group_begins_.begin(), group_begins_.end() - 1);
    members_.resize(nodes.size());
    groups_.resize(graph_.next_id(), none);
    std::vector<bool> waits(grouping.count);
    for (size_t place = 0; place < nodes.size(); ++place) {
      const uint32_t group = grouping.group_of[place];
      groups_[nodes[place]->id] = group;
      group_cuts_[group] = &cuts_[place];
      members_[next[group]++] = nodes[place];
      for (const uint32_t other : uses[place]) waits[group] = waits[group] || grouping.group_of[other] != group;
    }
    if (rest_ == Region::Kind::part) return;
    // All code is of one color, so that one at most waits for nothing; of pieces several may, and the first is taken.
    for (uint32_t group = 0; group < grouping.count && front_ == none; ++group)
      if (!waits[group] && !is_step(group)) front_ = group;
  }

  std::span<const Node *const> members_of(uint32_t group) const {
    if (group == none) return {};
    return std::span(members_).subspan(group_begins_[group], group_begins_[group + 1] - group_begins_[group]);
  }
  // Whether the group is one node that is not compiled, but run as a step.
  bool is_step(uint32_t group) const {
    return group_cuts_[group]->kind == Region::Kind::control || group_cuts_[group]->kind == Region::Kind::reference;
  }
  bool is_step(const Node &node) const { return node.kind == Node::Kind::op && is_step(groups_[node.id]); }
  bool is_program(uint32_t group) const { return group != none && group_cuts_[group]->kind == Region::Kind::program; }
  bool is_program(const Node &node) const { return node.kind == Node::Kind::op && is_program(groups_[node.id]); }
  // Whether the node reads the value dense, as nothing but a copy of it is: the constants of a program are its own.
  bool needs_copy(const Node &node, ValueId value) const {
    if (is_made(value) || is_dense_argument(value)) return false;
    return is_step(node) || (is_program(node) && graph_.find(value.node)->kind != Node::Kind::constant);
  }

  // Arguments and constants are read where they are, in any region; the first copies those that must be dense.
  bool is_made(ValueId value) const { return groups_[value.node] != none; }
  bool is_dense_argument(ValueId value) const { return dense_[value.node]; }
  void find_dense() {
    dense_.resize(graph_.next_id());
    for (const auto &arguments : {graph_.inputs(), graph_.parameters()})
      for (const uint32_t id : arguments) {
        const TensorType &type = graph_.find(id)->results[0];
        dense_[id] = type.strides == row_major_strides(type.dims);
      }
  }

  // Which nodes can be computed once a binding: of parts, from parameters and constants alone.
  void find_once() {
    once_.resize(graph_.next_id());
    if (rest_ != Region::Kind::part) return;
    const auto is_known = [&](ValueId value) {
      const Node &node = *graph_.find(value.node);
      return is_made(value) ? once_[node.id] : node.kind != Node::Kind::input && is_known_size(node);
    };
    for (const Node &node : graph_.nodes())
      once_[node.id] = node.kind == Node::Kind::op && !is_step(node) && !is_program(node) && !mutates(node) &&
                       !node.inputs.empty() && is_known_size(node) && std::ranges::all_of(node.inputs, is_known);
  }
  static bool is_known_size(const Node &node) {
    return std::ranges::none_of(
        node.results, [](const TensorType &type) { return std::ranges::any_of(type.dims, &Dim::depends_on_symbol); });
  }

  // The values that code yields to other regions.
  void find_crossing() {
    first_result_.resize(graph_.next_id());
    uint32_t results = 0;
    for (const Node &node : graph_.nodes()) {
      first_result_[node.id] = results;
      results += static_cast<uint32_t>(node.results.size());
    }
    crosses_.resize(results);
    for (const Node &node : graph_.nodes()) {
      for (ValueId input : node.inputs) {
        if (is_made(input) ? groups_[input.node] != groups_[node.id] : needs_copy(node, input)) note_crossing(input);
      }
    }
    for (const GraphOutput &output : graph_.outputs()) note_crossing(output.value);
  }
  void note_crossing(ValueId value) {
    const Node &node = *graph_.find(value.node);
    // A token that is an argument is nothing that could be copied, and what is cut out for a host has none.
    if (is_step(node) || (is_token(value) && (!is_made(value) || keeps_names_))) return;
    crosses_[first_result_[value.node] + value.output] = true;
  }

  Result<Region> step(uint32_t group) const {
    const Node &node = *members_of(group)[0];
    Region region{.kind = group_cuts_[group]->kind, .backend = backend_, .node = node.id, .inputs = node.inputs};
    region.refused = group_cuts_[group]->refused;
    region.function = group_cuts_[group]->function;
    for (uint32_t k = 0; k < node.results.size(); ++k) region.outputs.push_back({node.id, k});
    if (region.kind == Region::Kind::reference) {
      KILN_ASSIGN(region.graph, by_itself(node, region.function));
    }
    return region;
  }

  // A graph of the node alone, of which neither names nor layout tell where it stood. It names what runs it.
  Result<GraphPtr> by_itself(const Node &node, const std::string &function) const {
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
    if (!function.empty()) KILN_TRY(edit.annotate(id, function_annotation, function));
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
  Status add_code(uint32_t group, std::vector<Region> &regions) {
    const std::span<const Node *const> members = members_of(group);
    Region region{.kind = is_program(group) ? Region::Kind::program : rest_, .backend = backend_};
    if (group == front_) add_crossing(arguments(), region.outputs);
    add_crossing(members, region.outputs);
    const auto does_more = [](const Node *node) { return mutates(*node) || has_effect(*node); };  // than make values
    if (region.outputs.empty() && std::ranges::none_of(members, does_more)) return {};
    if (group != none) {
      region.name = group_cuts_[group]->name;
      region.options = group_cuts_[group]->options;
      if (is_program(group)) region.backend = region.options.backend;
    }
    find_border(members, region.outputs, group);
    for (const ValueId value : border_) {
      if (graph_.find(value.node)->kind == Node::Kind::constant || (keeps_names_ && is_token(value))) continue;
      (is_parameter(value) ? region.parameters : region.inputs).push_back(value);
    }
    for (const Node *node : members) region.nodes.push_back(node->id);
    // Large graphs of which little is marked are mostly nodes alone, alike but for what they are called.
    const bool alone = rest_ == Region::Kind::part && !region.name && group != front_ && members.size() == 1;
    size_t *known = alone ? &like_alone(*members[0], regions) : nullptr;
    if (known && *known < regions.size()) {
      region.graph = regions[*known].graph;
    } else {
      if (known) *known = regions.size();
      KILN_ASSIGN(region.graph, graph_of(members, region));
    }
    regions.push_back(std::move(region));
    return {};
  }

  // What a group reads of others, and of arguments, in the order in which it does.
  void find_border(std::span<const Node *const> members, std::span<const ValueId> crossing, uint32_t group) {
    border_.clear();
    std::set<ValueId> seen;
    const auto note = [&](ValueId value) {
      if (is_made(value) && groups_[value.node] == group) return;
      if (members.size() == 1 ? std::ranges::find(border_, value) == border_.end() : seen.insert(value).second)
        border_.push_back(value);
    };
    for (const Node *node : members) std::ranges::for_each(node->inputs, note);
    std::ranges::for_each(crossing, note);
  }

  // The place among regions of the one of a node by itself whose graph is that of `node`, too, where there is one.
  size_t &like_alone(const Node &node, std::span<const Region> regions) {
    size_t hash = std::hash<const void *>()(node.op) + node.attrs.size();
    for (const ValueId input : node.inputs) {
      const TensorType &type = graph_.type(input);
      hash = hash * 31 + static_cast<size_t>(type.dtype) * 8 + type.rank();
      for (const Dim &dim : type.dims) hash = hash * 31 + static_cast<size_t>(dim.is_integer() ? dim.integer() : -1);
    }
    std::vector<size_t> &same_hash = alone_[hash];
    for (size_t &place : same_hash)
      if (alike(node, *graph_.find(regions[place].nodes[0]))) return place;
    return same_hash.emplace_back(SIZE_MAX);
  }
  // Whether two values are alike to what reads them in a region.
  bool alike(ValueId a, ValueId b) const {
    const TensorType &type_a = graph_.type(a), &type_b = graph_.type(b);
    if (is_parameter(a) != is_parameter(b) || !type_a.same_value_type(type_b)) return false;
    if (is_made(a)) return is_made(b) || is_dense_argument(b);
    if (is_made(b)) return is_dense_argument(a);
    return graph_.find(a.node)->constant == graph_.find(b.node)->constant && type_a.strides == type_b.strides;
  }
  // Whether the graphs of two nodes by themselves are equal but for names.
  bool alike(const Node &a, const Node &b) const {
    if (a.op != b.op || a.inputs.size() != b.inputs.size() || a.attrs != b.attrs ||
        (a.annotations != b.annotations && annotations_of(a) != annotations_of(b)))
      return false;
    for (uint32_t k = 0; k < a.results.size(); ++k)
      if (crosses({a.id, k}) != crosses({b.id, k})) return false;
    const auto place = [](const Node &node, size_t k) {  // of the first operand that is the same
      return std::ranges::find(node.inputs, node.inputs[k]) - node.inputs.begin();
    };
    for (size_t k = 0; k < a.inputs.size(); ++k)
      if (place(a, k) != place(b, k) || !alike(a.inputs[k], b.inputs[k])) return false;
    return true;
  }

  Result<GraphPtr> graph_of(std::span<const Node *const> members, const Region &region) const {
    Edit edit;
    // What is read again by itself declares no symbol that it does not speak of: nothing there would bind it.
    const bool is_read_again = rest_ == Region::Kind::piece || region.kind == Region::Kind::program;
    const std::set<std::string> used = is_read_again ? sizes_in(members, region) : std::set<std::string>();
    for (const auto &[name, info] : graph_.symbols())
      if (!is_read_again || used.contains(name)) KILN_TRY(edit.declare_symbol(name, info));
    std::map<ValueId, ValueId> values;
    for (const ValueId value : border_) {
      const Node &node = *graph_.find(value.node);
      const std::string name = name_of(value, values.size());
      const TensorType type = type_of(value, region.kind == Region::Kind::program);
      if (node.kind == Node::Kind::constant) {
        KILN_ASSIGN(values[value], edit.constant(node.constant, node.name));
      } else if (keeps_names_ && is_token(value)) {  // what comes before is the host's to run before
        KILN_ASSIGN(values[value].node, edit.add(find_op("token"), {}, {}, name));
      } else if (is_parameter(value)) {
        KILN_ASSIGN(values[value], edit.parameter(name, type));
      } else {
        KILN_ASSIGN(values[value], edit.input(name, type));
      }
    }
    for (const Node *node : members) {
      std::vector<ValueId> operands;
      for (ValueId input : node->inputs) operands.push_back(values.at(input));
      KILN_ASSIGN(const uint32_t id, edit.add(node->op, operands, node->attrs, node->name, annotations_of(*node)));
      for (uint32_t k = 0; k < node->results.size(); ++k) values[{node->id, k}] = {id, k};
    }
    std::vector<GraphOutput> outputs;
    for (const ValueId value : region.outputs)
      outputs.push_back({keeps_names_ ? name_of(value, 0) : str_cat("output", outputs.size()), values.at(value)});
    if (rest_ == Region::Kind::piece) KILN_TRY(hand_in_sizes(members, region, used, edit));
    KILN_TRY(edit.set_outputs(std::move(outputs)));
    return edit.finish(false);
  }

  // The symbols that the nodes, and the values that cross their border, speak of.
  std::set<std::string> sizes_in(std::span<const Node *const> members, const Region &region) const {
    std::set<std::string> used;
    for (const Node *node : members) {
      for (const std::string &symbol : symbols_of(*node)) used.insert(symbol);
      for (const ResolvedSymbol &symbol : node->symbols) used.insert(symbol.name);
    }
    for (const auto *values : {&region.inputs, &region.parameters, &region.outputs})
      for (const ValueId value : *values) {
        const TensorType type = type_of(value);
        for (const auto *sizes : {&type.dims, &type.strides})
          for (const Dim &dim : *sizes) dim.collect_symbols(used);
      }
    return used;
  }

  // A piece is a graph of its own: each size that it speaks of is a dim of an input by itself, if need be of one that
  // is there for nothing else.
  Status hand_in_sizes(std::span<const Node *const> members, const Region &region, const std::set<std::string> &used,
                       Edit &edit) const {
    std::set<std::string> known;
    for (const Node *node : members)
      for (const ResolvedSymbol &symbol : node->symbols) known.insert(symbol.name);
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
  void add_crossing(std::span<const Node *const> nodes, std::vector<ValueId> &values) const {
    for (const Node *node : nodes)
      for (uint32_t k = 0; k < node->results.size(); ++k)
        if (crosses({node->id, k})) values.push_back({node->id, k});
  }
  bool crosses(ValueId value) const { return crosses_[first_result_[value.node] + value.output]; }

  // An argument's as it is, unless it is to be dense; of any other value row-major.
  TensorType type_of(ValueId value, bool dense = false) const {
    const TensorType &type = graph_.type(value);
    return dense || is_made(value) ? exact_type(type.dtype, type.dims) : type;
  }

  const Graph &graph_;
  const std::string backend_;
  const std::vector<Cut> cuts_;
  const Region::Kind rest_;
  const Keeps keeps_;
  bool keeps_names_ = false;  // of values that cross borders, as names of inputs and outputs
  std::vector<const Cut *> group_cuts_;
  std::vector<uint32_t> groups_;                 // by id of op nodes
  std::vector<const Node *> members_;            // of the first group, then of the second, ...
  std::vector<uint32_t> group_begins_;           // among these, and where the last ends
  uint32_t front_ = none;                        // the group of code that needs nothing of others
  std::vector<bool> dense_;                      // by id of arguments: row-major, and no constant
  std::vector<uint32_t> first_result_;           // by id: the number of its first result among all
  std::vector<bool> crosses_;                    // by number of the result: whether others or outputs need it
  std::vector<bool> once_;                       // by id of op nodes
  std::vector<ValueId> border_;                  // of the region that is being made
  std::map<size_t, std::vector<size_t>> alone_;  // by hash: places of regions of one node, of unlike graphs
};

std::vector<const Node *> ops_of(const Graph &graph) {
  std::vector<const Node *> nodes;
  nodes.reserve(graph.nodes().size());
  for (const Node &node : graph.nodes())
    if (node.kind == Node::Kind::op) nodes.push_back(&node);
  return nodes;
}

bool keeps_all(std::string_view) { return true; }
bool keeps_users(std::string_view annotation) { return !annotation.starts_with("kiln."); }
bool keeps_own(std::string_view annotation) {  // what a node says of itself, whatever is cut
  return annotation == "kiln.decompose" || annotation == function_annotation || keeps_users(annotation);
}
bool keeps_marks(std::string_view annotation) { return annotation != "kiln.cut"; }

// What a node becomes that no region has.
Region::Kind fallback_of(const Graph &graph, const Node &node, Fallback fallback, bool by_function) {
  if (is_control(node)) return Region::Kind::control;
  const bool by_reference = (fallback == Fallback::reference || by_function) && runs_as_reference(graph, node);
  return by_reference ? Region::Kind::reference : Region::Kind::part;
}

// The function that a node is run by which falls back; empty: none is.
std::string function_for(const Node &node, const BackendInfo &backend, const FunctionTable &functions) {
  if (const std::string_view named = function_of(node); !named.empty()) return std::string(named);
  if (backend.on_device() || is_control(node)) return "";  // functions run on the host, one node each
  const FunctionPtr fallback = functions.fallback(node.op->name);
  return fallback ? fallback->name : "";
}

// The same of a node that the backend refuses, of which it makes no kernel either.
Result<Region::Kind> refused_kind(const Graph &graph, const Node &node, const BackendInfo &backend,
                                  const std::string &why, bool may_fall_back) {
  // Of these it is no fallback.
  may_fall_back |= runs_itself(node) || makes_token(node) || has_effect(node) || !function_of(node).empty();
  if (may_fall_back && is_control(node)) return Region::Kind::control;
  const bool runs = runs_as_reference(graph, node);
  if (may_fall_back && runs && !backend.on_device()) return Region::Kind::reference;
  return error(Code::unimplemented, "backend ", backend.name, " does not take it: ", why,
               !may_fall_back ? "; option 'fallback' is 'error'"
               : runs         ? "; what runs it does so on the host"
                              : "; nothing runs it by itself: its operands do not tell all sizes")
      .at_node(node.name, str_cat(" [", node.op->name, "]: "));
}

// Nodes that the backends chosen for them do not take.
using Declined = std::map<uint32_t, Region::Declined>;

// Whether the registered backend that is chosen for a node of a region takes it: then it is in a program.
Result<bool> offer(const Offers &offers, const GraphPtr &graph, const Node &node, Fallback fallback, Cut &cut,
                   Declined &declined) {
  if (!cut.name || cut.options.backend.empty()) return false;
  KILN_ASSIGN(const std::optional<std::string> why, offers.refusal(cut.options, graph, node));
  if (!why) cut.kind = Region::Kind::program;
  if (why) declined[node.id] = {node.id, cut.options.backend, *why};
  if (why && fallback == Fallback::error)
    return error(Code::unimplemented, "node '", node.name, "' [", node.op->name, "]: backend ", cut.options.backend,
                 " does not take it: ", *why, "; option 'fallback' is 'error'");
  return !why;
}

void tell(const Declined &declined, std::vector<Region> &regions) {
  if (declined.empty()) return;
  for (Region &region : regions) {
    const std::span<const uint32_t> nodes = region.nodes.empty() ? std::span(&region.node, 1) : std::span(region.nodes);
    for (const uint32_t node : nodes)
      if (const auto found = declined.find(node); found != declined.end()) region.declined.push_back(found->second);
  }
}

}  // namespace

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

Result<std::vector<Region>> partition(const GraphPtr &graph, const BackendInfo &backend) {
  if (std::ranges::none_of(graph->nodes(), is_control)) return std::vector<Region>{whole_graph(graph, backend)};
  std::vector<Cut> cuts;
  for (const Node *node : ops_of(*graph))
    cuts.push_back(is_control(*node) ? Cut{.kind = Region::Kind::control} : Cut{.color = 1});
  return Partitioner(*graph, backend.name, std::move(cuts), Region::Kind::code, keeps_all).run();
}

Result<std::vector<Region>> partition(const GraphPtr &graph, Refusals &refusals, const Modes &modes,
                                      const RegionChoices &choices, const FunctionTable &functions,
                                      const Offers &offers) {
  const std::vector<const Node *> nodes = ops_of(*graph);
  std::vector<Cut> cuts;
  cuts.reserve(nodes.size());
  std::map<std::pair<std::string, RegionOptions>, uint32_t> colors;  // in an order that is not that of the nodes
  Declined declined;
  for (const Node *node : nodes) {
    Cut &cut = cuts.emplace_back(Cut{.kind = Region::Kind::part, .name = region_of(*node, modes)});
    cut.options = cut.name ? choices.at(*node, *cut.name) : choices.base();
    KILN_ASSIGN(const bool is_taken, offer(offers, graph, *node, modes.fallback, cut, declined));
    if (is_taken) {
      colors.try_emplace({*cut.name, cut.options});
      continue;
    }
    if (const std::optional<std::string> why = refusals.of(*graph, *node)) {
      const bool may_fall_back = !cut.name || modes.fallback != Fallback::error;
      KILN_ASSIGN(cut.kind, refused_kind(*graph, *node, refusals.backend(), *why, may_fall_back));
      cut.name.reset();
      cut.refused = *why;
    }
    if (!cut.name && !is_call(*node)) cut.function = function_for(*node, refusals.backend(), functions);
    if (!cut.name) cut.options = choices.base();
    cut.options.backend.clear();
    cut.options.backend_options.clear();
    if (cut.name) colors.try_emplace({*cut.name, cut.options});
  }
  uint32_t last = 0;
  for (auto &[region, color] : colors) color = ++last;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Cut &cut = cuts[i];
    if (!cut.refused.empty()) continue;
    if (!cut.name)
      cut.kind = fallback_of(*graph, *nodes[i], modes.fallback, !cut.function.empty());
    else if (!is_call(*nodes[i]))
      cut.color = colors.at({*cut.name, cut.options});
  }
  Partitioner partitioner(*graph, refusals.backend().name, std::move(cuts), Region::Kind::part, keeps_users);
  KILN_ASSIGN(std::vector<Region> regions, partitioner.run());
  tell(declined, regions);
  return regions;
}

Result<std::vector<Region>> partition(const GraphPtr &graph, const BackendInfo &backend, const Modes &modes,
                                      std::span<const uint32_t> piece_of) {
  std::vector<Cut> cuts;
  for (const uint32_t piece : piece_of) cuts.push_back({.color = piece + 1, .kind = Region::Kind::piece});
  const auto keeps = modes.cut() ? keeps_marks : keeps_own;
  return Partitioner(*graph, backend.name, std::move(cuts), Region::Kind::piece, keeps).run();
}

Result<std::vector<Region>> cut_out(const Graph &graph, const std::vector<bool> &members) {
  std::vector<Cut> cuts;
  for (const bool is_member : members) cuts.push_back({.color = is_member, .kind = Region::Kind::piece});
  return Partitioner(graph, "", std::move(cuts), Region::Kind::piece, keeps_all).colored();
}

}  // namespace kiln
