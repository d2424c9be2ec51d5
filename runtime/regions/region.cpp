#include "runtime/regions/region.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/graph/edit.h"
#include "runtime/ops/nested.h"

namespace kiln {
namespace {

Region whole_graph(const GraphPtr &graph, const std::string &backend) {
  Region region{.backend = backend, .graph = graph};
  for (uint32_t id : graph->inputs()) region.inputs.push_back({id, 0});
  for (uint32_t id : graph->parameters()) region.parameters.push_back({id, 0});
  for (const GraphOutput &output : graph->outputs()) region.outputs.push_back(output.value);
  return region;
}

// Code has even levels, control nodes odd ones: a node runs after all of lower levels.
class Partitioner {
 public:
  Partitioner(const Graph &graph, const std::string &backend) : graph_(graph), backend_(backend) {}

  Result<std::vector<Region>> run() {
    find_levels();
    find_crossing();
    std::vector<Region> regions;
    for (uint32_t level = 0; level <= last_; level += 2) {
      KILN_ASSIGN(Region code, code_of(level));
      if (!code.outputs.empty() || writes_inputs(*code.graph)) regions.push_back(std::move(code));
      for (const Node &node : graph_.nodes())
        if (is_control(node) && levels_.at(node.id) == level + 1) regions.push_back(control(node));
    }
    return regions;
  }

 private:
  static bool mutates(const Node &node) { return node.op && (node.op->flags & op_flags::mutates); }
  static bool writes_inputs(const Graph &graph) { return std::ranges::any_of(graph.nodes(), mutates); }

  void find_levels() {
    for (const Node &node : graph_.nodes()) {
      uint32_t level = 0;
      for (ValueId input : node.inputs) level = std::max(level, levels_.at(input.node));
      for (const Node *resolver : graph_.resolvers_for(node)) level = std::max(level, levels_.at(resolver->id));
      if (is_control(node) != (level % 2 == 1)) ++level;
      levels_[node.id] = level;
      last_ = std::max(last_, level);
    }
    last_ += last_ % 2;
    for (const Node &node : graph_.nodes())  // what writes inputs runs when all that reads them has
      if (mutates(node)) levels_[node.id] = last_;
  }

  bool is_code(const Node &node) const { return node.kind == Node::Kind::op && !is_control(node); }
  // Arguments and constants are read where they are, in any region; level 0 copies those that must be dense.
  bool is_made(ValueId value) const { return graph_.find(value.node)->kind == Node::Kind::op; }
  bool is_dense_argument(ValueId value) const {
    const Node &node = *graph_.find(value.node);
    return node.kind != Node::Kind::constant && node.results[0].strides == row_major_strides(node.results[0].dims);
  }

  // The values that code yields to other regions.
  void find_crossing() {
    for (const Node &node : graph_.nodes()) {
      for (ValueId input : node.inputs) {
        if (is_made(input) ? levels_.at(input.node) < levels_.at(node.id)
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

  Result<Region> code_of(uint32_t level) {
    Region region{.backend = backend_};
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
    for (const Node &node : graph_.nodes()) {
      if (!is_code(node) || levels_.at(node.id) != level) continue;
      std::vector<ValueId> operands;
      for (ValueId input : node.inputs) {
        KILN_ASSIGN(operands.emplace_back(), value_of(input));
      }
      KILN_ASSIGN(const uint32_t id, edit.add(node.op, operands, node.attrs, node.name, node.annotations));
      for (uint32_t k = 0; k < node.results.size(); ++k) values[{node.id, k}] = {id, k};
    }
    std::vector<GraphOutput> outputs;
    for (ValueId value : crossing_at(level)) {
      KILN_ASSIGN(const ValueId inside, value_of(value));
      outputs.push_back({str_cat("output", outputs.size()), inside});
      region.outputs.push_back(value);
    }
    KILN_TRY(edit.set_outputs(std::move(outputs)));
    KILN_ASSIGN(region.graph, edit.finish(false));
    return region;
  }

  // In the order of their nodes.
  std::vector<ValueId> crossing_at(uint32_t level) const {
    std::vector<ValueId> values;
    for (const Node &node : graph_.nodes()) {
      for (uint32_t k = 0; levels_.at(node.id) == level && k < node.results.size(); ++k)
        if (crossing_.contains({node.id, k})) values.push_back({node.id, k});
    }
    return values;
  }

  // An argument's as it is, of any other value row-major.
  TensorType type_of(ValueId value) const {
    const TensorType &type = graph_.type(value);
    return is_made(value) ? make_type(type.dtype, type.dims) : type;
  }

  const Graph &graph_;
  const std::string &backend_;
  std::map<uint32_t, uint32_t> levels_;  // by node
  std::set<ValueId> crossing_;           // what code makes for other regions and the outputs
  uint32_t last_ = 0;                    // level of code
};

}  // namespace

Result<std::vector<Region>> partition(const GraphPtr &graph, const std::string &backend) {
  if (std::ranges::none_of(graph->nodes(), is_control)) return std::vector<Region>{whole_graph(graph, backend)};
  return Partitioner(*graph, backend).run();
}

}  // namespace kiln
