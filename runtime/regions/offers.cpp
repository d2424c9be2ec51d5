#include "runtime/regions/offers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/functions/function.h"
#include "runtime/graph/edit.h"
#include "runtime/ops/nested.h"
#include "runtime/passes/builtin.h"
#include "runtime/regions/region.h"

namespace kiln {
namespace {

// What a region's own graph can be made of, whoever compiles it. Empty: the node is that.
std::string_view unfit(const Graph &graph, const Node &node) {
  if (is_call(node) || is_control(node)) return "it is no single step";
  if (!function_of(node).empty()) return "a function runs it";
  if (makes_token(node)) return "it orders effects";
  return runs_as_reference(graph, node) ? "" : "its operands do not tell all that it needs, or it writes one";
}

bool has_symbols(const Graph &graph, const Node &node) {
  const auto is_open = [](const TensorType &type) { return std::ranges::any_of(type.dims, &Dim::depends_on_symbol); };
  return std::ranges::any_of(node.results, is_open) ||
         std::ranges::any_of(node.inputs, [&](ValueId input) { return is_open(graph.type(input)); });
}

bool may_be_decomposed(const Node &node) {
  if (!op_of(node).decompose) return false;
  const auto mark = node.annotations.find("kiln.decompose");
  return mark == node.annotations.end() || mark->second.text_value() != "keep";
}

}  // namespace

const Offers &Offers::none() {
  static const ChosenBackends no_backends;
  static const Offers none(no_backends, builtin_ops(),
                           [](GraphPtr graph) { return Result<GraphPtr>(std::move(graph)); });
  return none;
}

Result<std::optional<std::string>> Offers::refusal(const RegionOptions &region, const GraphPtr &graph,
                                                   const Node &node) const {
  const auto refused = [](std::string_view why) { return std::optional(std::string(why)); };
  if (const std::string_view why = unfit(*graph, node); !why.empty()) return refused(why);
  const ChosenBackend &chosen = backends_.find(region.backend)->second;
  if (!chosen.backend->symbolic && has_symbols(*graph, node)) return refused("it has sizes that a call tells");
  auto why =
      chosen.backend->functions->refusal(graph, node.id, chosen.options_with(region.backend_options, region.rounding));
  if (!why.ok()) return why.take_status().at_node(node.name, str_cat(" [", node.op->name, "]: "));
  return why;
}

Result<std::optional<Offers::Parts>> Offers::taken_parts(const RegionOptions &region, const GraphPtr &graph,
                                                         const Node &node) const {
  std::vector<bool> members;
  for (const Node &other : graph->nodes())
    if (other.kind == Node::Kind::op) members.push_back(other.id == node.id);
  KILN_ASSIGN(std::vector<Region> alone, cut_out(*graph, members));
  if (alone.size() != 1 || alone[0].outputs.size() != node.results.size()) return std::optional<Parts>();
  Parts parts{.graph = {}, .operands = std::move(alone[0].inputs)};
  std::ranges::copy(alone[0].parameters, std::back_inserter(parts.operands));
  KILN_ASSIGN(GraphPtr whole, without_parameters(*alone[0].graph));
  KILN_ASSIGN(parts.graph, flatten_(std::move(whole)));
  for (const Node &part : parts.graph->nodes()) {
    if (part.kind != Node::Kind::op) continue;
    KILN_ASSIGN(const std::optional<std::string> why, refusal(region, parts.graph, part));
    if (why) return std::optional<Parts>();
  }
  return std::optional(std::move(parts));
}

Result<GraphPtr> Offers::decompose(GraphPtr graph,
                                   const std::function<const RegionOptions *(const Node &)> &region_of) const {
  std::map<uint32_t, Parts> replacements;
  for (const Node &node : graph->nodes()) {
    if (node.kind != Node::Kind::op || !may_be_decomposed(node) || !unfit(*graph, node).empty()) continue;
    const RegionOptions *const region = region_of(node);
    if (!region || region->backend.empty()) continue;
    KILN_ASSIGN(const std::optional<std::string> why, refusal(*region, graph, node));
    if (!why) continue;
    KILN_ASSIGN(std::optional<Parts> parts, taken_parts(*region, graph, node));
    if (parts) replacements.emplace(node.id, std::move(*parts));
  }
  if (replacements.empty()) return graph;
  // Each becomes a call of what it is made of, and then what that calls.
  Edit edit(graph);
  std::map<ValueId, ValueId> replaced;
  for (auto &[id, parts] : replacements) {
    const Node &node = *graph->find(id);
    for (ValueId &operand : parts.operands)
      if (const auto found = replaced.find(operand); found != replaced.end()) operand = found->second;
    edit.retire(id);
    KILN_ASSIGN(const uint32_t call, edit.add(ops_.find("call"), parts.operands, {{"graph", std::move(parts.graph)}},
                                              node.name, node.annotations));
    for (uint32_t k = 0; k < node.results.size(); ++k) {
      KILN_TRY(edit.replace({id, k}, {call, k}));
      replaced[{id, k}] = {call, k};
    }
  }
  KILN_ASSIGN(GraphPtr with_calls, edit.finish(false));
  std::set<std::string> names;
  for (const auto &[id, parts] : replacements) names.insert(graph->find(id)->name);
  return inline_calls(std::move(with_calls), ops_, [&](const Node &call) { return !names.contains(call.name); });
}

Result<GraphPtr> without_parameters(const Graph &region) {
  Edit edit;
  for (const auto &[name, info] : region.symbols()) KILN_TRY(edit.declare_symbol(name, info));
  std::map<ValueId, ValueId> values;
  for (const auto &side : {region.inputs(), region.parameters()})
    for (const uint32_t id : side) {
      const Node &node = *region.find(id);
      KILN_ASSIGN(values[(ValueId{id, 0})], edit.input(node.name, node.results[0]));
    }
  for (const Node &node : region.nodes()) {
    if (node.kind == Node::Kind::constant) {
      KILN_ASSIGN(values[(ValueId{node.id, 0})], edit.constant(node.constant, node.name));
    } else if (node.kind == Node::Kind::op) {
      std::vector<ValueId> operands;
      for (const ValueId input : node.inputs) operands.push_back(values.at(input));
      KILN_ASSIGN(const uint32_t id, edit.add(node.op, operands, node.attrs, node.name, node.annotations));
      for (uint32_t k = 0; k < node.results.size(); ++k) values[{node.id, k}] = {id, k};
    }
  }
  std::vector<GraphOutput> outputs;
  for (const GraphOutput &output : region.outputs()) outputs.push_back({output.name, values.at(output.value)});
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  return edit.finish(false);
}

}  // namespace kiln
