#include <algorithm>

#include "tests/backend/harness.h"
#include "tests/backend/random/propose.h"

namespace kiln::testing {
namespace {

// The graph without the parameters that nothing reads, and the inputs that nothing reads and no symbol is bound by.
Result<RandomCase> without_unused_leaves(const RandomCase &from) {
  const Graph &graph = *from.graph;
  std::set<std::string> bound;
  Edit edit;
  RandomCase made{from.seed, nullptr, {}};
  for (const GraphCall &call : from.calls) made.calls.push_back({call.sizes, {}});
  std::map<ValueId, ValueId> now;
  for (const auto &ids : {graph.inputs(), graph.parameters()}) {
    const bool inputs = ids.data() == graph.inputs().data();
    for (size_t k = 0; k < ids.size(); ++k) {
      const Node &node = *graph.find(ids[k]);
      const TensorType &type = node.results[0];
      bool wanted = graph.use_count({node.id, 0}) > 0;
      for (const Dim &dim : type.dims)
        if (inputs && dim.kind() == Expr::Kind::symbol) wanted |= bound.insert(dim.symbol_name()).second;
      if (!wanted) continue;
      KILN_ASSIGN(now[(ValueId{node.id, 0})], inputs ? edit.input(node.name, type) : edit.parameter(node.name, type));
      const size_t at = k + (inputs ? 0 : graph.inputs().size());
      for (size_t c = 0; c < from.calls.size(); ++c) made.calls[c].arguments.push_back(from.calls[c].arguments[at]);
    }
  }
  for (const std::string &symbol : bound) KILN_TRY(edit.declare_symbol(symbol, graph.symbols().at(symbol)));
  for (const Node &node : graph.nodes()) {
    if (node.kind == Node::Kind::constant) {
      KILN_ASSIGN(now[(ValueId{node.id, 0})], edit.constant(node.constant, node.name));
    } else if (node.op) {
      std::vector<ValueId> operands;
      for (ValueId operand : node.inputs) operands.push_back(now.at(operand));
      KILN_ASSIGN(uint32_t id, edit.add(node.op, operands, node.attrs, node.name, node.annotations));
      for (uint32_t r = 0; r < node.results.size(); ++r) now[{node.id, r}] = {id, r};
    }
  }
  std::vector<GraphOutput> outputs;
  for (const GraphOutput &output : graph.outputs()) outputs.push_back({output.name, now.at(output.value)});
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  KILN_ASSIGN(made.graph, edit.finish());
  return made;
}

Result<RandomCase> without_output(const RandomCase &from, size_t which) {
  Edit edit(from.graph);
  std::vector<GraphOutput> outputs(from.graph->outputs().begin(), from.graph->outputs().end());
  if (outputs.size() < 2) return invalid("there is one output");
  outputs.erase(outputs.begin() + static_cast<ptrdiff_t>(which));
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  RandomCase made = from;
  KILN_ASSIGN(made.graph, edit.finish());
  return made;
}

// With an input that holds the value in place of the node that computes it.
Result<RandomCase> with_input_for(const RandomCase &from, ValueId value) {
  Edit outputs(from.graph);
  KILN_TRY(outputs.set_outputs({{"value", value}}));
  KILN_ASSIGN(const GraphPtr alone, outputs.finish(false));
  Edit edit(from.graph);
  const TensorType type = from.graph->type(value);
  KILN_ASSIGN(ValueId input, edit.input(str_cat("cut", value.packed()), make_type(type.dtype, type.dims)));
  KILN_TRY(edit.replace(value, input));
  RandomCase made = from;
  KILN_ASSIGN(made.graph, edit.finish());
  for (GraphCall &call : made.calls) {
    KILN_ASSIGN(std::vector<TensorData> results, run_on_reference(*alone, call.arguments));
    call.arguments.insert(call.arguments.begin() + static_cast<ptrdiff_t>(from.graph->inputs().size()), results[0]);
  }
  return without_unused_leaves(made);
}

// An operand in place of the node, where it has the node's type.
Result<RandomCase> with_operand_for(const RandomCase &from, ValueId value, ValueId operand) {
  Edit edit(from.graph);
  KILN_TRY(edit.replace(value, operand));
  RandomCase made = from;
  KILN_ASSIGN(made.graph, edit.finish());
  return without_unused_leaves(made);
}

}  // namespace

RandomCase shrink(RandomCase failing, const std::function<bool(const RandomCase &)> &fails) {
  int tries = 400;
  auto accept = [&](Result<RandomCase> smaller) {
    if (tries <= 0 || !smaller.ok() || smaller->graph->outputs().empty()) return false;
    --tries;
    if (!fails(*smaller)) return false;
    failing = std::move(smaller).value();
    return true;
  };
  for (size_t k = failing.calls.size(); k-- > 0 && failing.calls.size() > 1;) {
    RandomCase fewer = failing;
    fewer.calls.erase(fewer.calls.begin() + static_cast<ptrdiff_t>(k));
    accept(std::move(fewer));
  }
  for (bool smaller = true; smaller && tries > 0;) {
    smaller = accept(without_unused_leaves(failing)) && false;
    for (size_t k = failing.graph->outputs().size(); k-- > 0;) smaller |= accept(without_output(failing, k));
    const GraphPtr graph = failing.graph;  // whose values are tried; of those that are gone by then nothing comes
    for (const Node &node : graph->nodes()) {
      if (!node.op || node.op->flags & op_flags::mutates) continue;
      for (uint32_t r = 0; r < node.results.size(); ++r) {
        const Node *now = failing.graph->find(node.name);
        if (!now || !now->op || failing.graph->use_count({now->id, r}) == 0) continue;
        const std::vector<ValueId> operands = now->inputs;
        bool done = accept(with_input_for(failing, {now->id, r}));
        for (size_t k = 0; k < operands.size() && !done; ++k)
          done = accept(with_operand_for(failing, {now->id, r}, operands[k]));
        smaller |= done;
      }
    }
  }
  return failing;
}

}  // namespace kiln::testing
