#include <algorithm>

#include "tests/backend/harness.h"
#include "tests/backend/random/propose.h"

namespace kiln::testing {
namespace {

// A value that becomes an input.
struct Cut {
  ValueId value;
  std::vector<TensorData> data;  // at each call
};

Shape with_sizes(Shape dims, const SymbolSizes &sizes) {
  for (Dim &dim : dims)
    dim = dim.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      const auto found = leaf.kind() == Expr::Kind::symbol ? sizes.find(leaf.symbol_name()) : sizes.end();
      return found == sizes.end() ? std::nullopt : std::optional<Expr>(found->second);
    });
  return dims;
}

// The graph without the parameters that nothing reads, and the inputs that nothing reads and no symbol is bound by;
// with an input in place of the cut value, and `sizes` where nodes, or the type of that input, speak of these symbols.
Result<RandomCase> rebuilt(const RandomCase &from, const SymbolSizes &sizes = {}, const Cut *cut = nullptr) {
  const Graph &graph = *from.graph;
  std::set<std::string> bound;
  Edit edit;
  RandomCase made{from.seed, nullptr, {}};
  for (const GraphCall &call : from.calls) made.calls.push_back({call.sizes, {}});
  std::map<ValueId, ValueId> now;
  std::optional<ValueId> input_of_cut;
  for (const bool inputs : {true, false}) {
    const std::span<const uint32_t> ids = inputs ? graph.inputs() : graph.parameters();
    if (!inputs && cut) {
      const TensorType &type = graph.type(cut->value);
      const std::string name = str_cat("cut", cut->value.packed());
      KILN_ASSIGN(input_of_cut, edit.input(name, make_type(type.dtype, with_sizes(type.dims, sizes))));
      for (size_t c = 0; c < from.calls.size(); ++c) made.calls[c].arguments.push_back(cut->data[c]);
    }
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
  for (const auto &[symbol, info] : graph.symbols())
    if (bound.contains(symbol) || graph.resolver(symbol)) KILN_TRY(edit.declare_symbol(symbol, info));
  for (const Node &node : graph.nodes()) {
    if (node.kind == Node::Kind::constant) {
      KILN_ASSIGN(now[(ValueId{node.id, 0})], edit.constant(node.constant, node.name));
    } else if (node.op) {
      std::vector<ValueId> operands;
      for (ValueId operand : node.inputs) operands.push_back(now.at(operand));
      AttrMap attrs = node.attrs;
      for (auto &[name, value] : attrs)
        if (auto *dims = std::get_if<std::vector<Dim>>(&value.items)) *dims = with_sizes(*dims, sizes);
      KILN_ASSIGN(uint32_t id, edit.add(node.op, operands, std::move(attrs), node.name, node.annotations));
      for (uint32_t r = 0; r < node.results.size(); ++r) now[{node.id, r}] = {id, r};
      if (cut && cut->value.node == node.id) now[cut->value] = *input_of_cut;
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

// What nodes resolve these symbols to: no leaf can have them, so that they must be the same at all calls.
Result<SymbolSizes> resolved_sizes(const RandomCase &from, const std::set<std::string> &symbols) {
  SymbolSizes sizes;
  for (const GraphCall &call : from.calls) {
    std::vector<RefTensor> tensors;
    for (const TensorData &argument : call.arguments) tensors.push_back(to_reference(argument));
    std::vector<const RefTensor *> pointers;
    for (const RefTensor &tensor : tensors) pointers.push_back(&tensor);
    SymbolSizes now;
    KILN_TRY(run_reference(*from.graph, pointers, nullptr, {}, &now).take_status());
    std::erase_if(now,
                  [&](const auto &size) { return !symbols.contains(size.first) || !from.graph->resolver(size.first); });
    if (&call == &from.calls.front())
      sizes = std::move(now);
    else if (now != sizes)
      return invalid("a size is another at each call");
  }
  return sizes;
}

bool is_in_attributes(const Graph &graph, const std::string &symbol) {
  std::set<std::string> used;
  for (const Node &node : graph.nodes())
    for (const auto &[name, value] : node.attrs)
      if (const auto *dims = std::get_if<std::vector<Dim>>(&value.items))
        for (const Dim &dim : *dims) dim.collect_symbols(used);
  return used.contains(symbol);
}

// With an integer where nodes speak of the symbol.
Result<RandomCase> with_known(const RandomCase &from, const std::string &symbol) {
  KILN_ASSIGN(const SymbolSizes sizes, resolved_sizes(from, {symbol}));
  if (sizes.empty()) return invalid("no node resolves it");
  return rebuilt(from, sizes);
}

// With an input that holds the value in place of the node that computes it.
Result<RandomCase> with_input_for(const RandomCase &from, ValueId value) {
  Edit outputs(from.graph);
  KILN_TRY(outputs.set_outputs({{"value", value}}));
  KILN_ASSIGN(const GraphPtr alone, outputs.finish(false));
  std::set<std::string> symbols;
  for (const Dim &dim : from.graph->type(value).dims) dim.collect_symbols(symbols);
  KILN_ASSIGN(const SymbolSizes sizes, resolved_sizes(from, symbols));
  Cut cut{value, {}};
  for (const GraphCall &call : from.calls) {
    KILN_ASSIGN(std::vector<TensorData> results, run_on_reference(*alone, call.arguments));
    cut.data.push_back(std::move(results[0]));
  }
  KILN_ASSIGN(const RandomCase made, rebuilt(from, sizes, &cut));
  return rebuilt(made);
}

// An operand in place of the node, where it has the node's type.
Result<RandomCase> with_operand_for(const RandomCase &from, ValueId value, ValueId operand) {
  Edit edit(from.graph);
  KILN_TRY(edit.replace(value, operand));
  RandomCase made = from;
  KILN_ASSIGN(made.graph, edit.finish());
  return rebuilt(made);
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
    smaller = accept(rebuilt(failing)) && false;
    for (size_t k = failing.graph->outputs().size(); k-- > 0;) smaller |= accept(without_output(failing, k));
    const GraphPtr graph = failing.graph;  // whose values are tried; of those that are gone by then nothing comes
    for (const auto &[symbol, info] : graph->symbols())
      if (is_in_attributes(*failing.graph, symbol)) smaller |= accept(with_known(failing, symbol));
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
