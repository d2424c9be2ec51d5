#include "runtime/regions/turn.h"

#include <algorithm>

#include "runtime/graph/edit.h"
#include "runtime/ops/nested.h"
#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

// The body at the types that this node gives it, in terms of the graph's symbols.
Result<GraphPtr> body_at(const Graph &graph, const Node &scan, const OpTable &ops) {
  const ScanOperands operands = scan_operands(scan.attrs, scan.inputs.size());
  Edit edit;
  for (const auto &[name, info] : graph.symbols()) KILN_TRY(edit.declare_symbol(name, info));
  std::vector<ValueId> inputs;
  for (size_t k = 0; k < scan.inputs.size(); ++k) {
    const TensorType &type = graph.type(scan.inputs[k]);
    const bool is_element = k >= operands.carried && k < operands.carried + operands.sequences;
    KILN_ASSIGN(inputs.emplace_back(),
                edit.input(str_cat("x", k), make_type(type.dtype, {type.dims.begin() + is_element, type.dims.end()})));
  }
  const GraphPtr &body = scan.attrs.find("body_graph")->second.graph();
  KILN_ASSIGN(const uint32_t call, edit.add(ops.find("call"), inputs, {{"graph", body}}));
  std::vector<GraphOutput> outputs;
  for (uint32_t k = 0; k < body->outputs().size(); ++k) outputs.push_back({str_cat("y", k), {call, k}});
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  return edit.finish(false);
}

bool is_plain(const Graph &graph) {
  return std::ranges::all_of(graph.nodes(), [](const Node &node) {
    return !is_control(node) && node.equalities.empty() && node.symbols.empty() &&
           !(node.op && node.op->flags & op_flags::mutates);
  });
}

// Whether it is a parameter that the scan reads as it lies there; sizes that differ from call to call are not bound.
bool is_bound(const Graph &graph, ValueId value) {
  const Node &node = *graph.find(value.node);
  const TensorType &type = node.results[0];
  return node.kind == Node::Kind::parameter && type.strides == row_major_strides(type.dims) &&
         std::ranges::none_of(type.dims, &Dim::depends_on_symbol);
}

// A tensor of all turns.
uint32_t add_whole(kernel::Program &program, uint32_t element, const Expr &turns) {
  kernel::Tensor whole = program.tensors[element];
  whole.dims.insert(whole.dims.begin(), turns);
  whole.strides = row_major_strides(whole.dims);
  program.tensors.push_back(std::move(whole));
  return static_cast<uint32_t>(program.tensors.size() - 1);
}

}  // namespace

Result<GraphPtr> flatten(GraphPtr graph, const OpTable &ops, const LowerOptions &options) {
  KILN_ASSIGN(graph, inline_calls(std::move(graph), ops));
  KILN_ASSIGN(graph, widen(std::move(graph), ops, options.region.ordered()));
  KILN_ASSIGN(graph, decompose(std::move(graph), ops));
  if (!options.region.ordered() && !options.backend.on_device()) {
    KILN_ASSIGN(graph, winograd(std::move(graph), ops));
  }
  KILN_ASSIGN(graph, convert_early(std::move(graph)));
  KILN_ASSIGN(graph, split_concats(std::move(graph)));
  return merge_equal_nodes(std::move(graph));
}

Result<std::optional<LoweredTurn>> lower_turn(const Graph &graph, const Node &scan, const OpTable &ops,
                                              const LowerOptions &options, bool nested) {
  const auto nothing = [] { return std::optional<LoweredTurn>(); };
  KILN_ASSIGN(GraphPtr body, body_at(graph, scan, ops));
  KILN_ASSIGN(body, flatten(std::move(body), ops, options));
  if (!is_plain(*body)) return nothing();
  const ScanOperands operands = scan_operands(scan.attrs, scan.inputs.size());
  LoweredTurn made;
  made.turns.count = turns_of(graph, scan);
  made.turns.reverse = operands.reverse;
  KILN_ASSIGN(made.lowered, lower(*body));
  Lowered &lowered = made.lowered;
  if (!lowered.risks.empty()) return nothing();
  kernel::Program &program = lowered.program;
  std::vector<bool> computed(program.tensors.size());
  for (kernel::Program::Def &def : program.defs) {
    def.node = def.op = {};  // views of a graph that goes
    for (const uint32_t tensor : def.results) computed[tensor] = true;
  }
  for (const uint32_t output : lowered.outputs)
    if (!computed[output]) return nothing();
  for (kernel::Tensor &tensor : program.tensors) tensor.prepared = false;  // nothing is bound to a turn

  for (uint32_t k = operands.carried + operands.sequences; k < scan.inputs.size(); ++k)
    if (!nested && is_bound(graph, scan.inputs[k])) made.turns.prepared.push_back(lowered.inputs[k]);

  for (uint32_t k = 0; k < operands.carried; ++k) {
    kernel::Tensor end = program.tensors[lowered.outputs[k]];
    program.tensors.push_back(std::move(end));
    const auto number = static_cast<uint32_t>(program.tensors.size() - 1);
    made.turns.carried.push_back({lowered.inputs[k], lowered.outputs[k], number});
    lowered.outputs[k] = number;
  }
  const auto to_whole = [&](uint32_t &tensor, std::vector<kernel::Turns::Sequence> &sequences) {
    const uint32_t whole = add_whole(program, tensor, made.turns.count);
    sequences.push_back({tensor, whole});
    tensor = whole;
  };
  for (uint32_t k = 0; k < operands.sequences; ++k) to_whole(lowered.inputs[operands.carried + k], made.turns.read);
  for (size_t k = operands.carried; k < lowered.outputs.size(); ++k) to_whole(lowered.outputs[k], made.turns.made);
  return std::optional(std::move(made));
}

}  // namespace kiln
