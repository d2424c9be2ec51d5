#include <map>
#include <set>

#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

using Symbols = std::map<std::string, Dim>;  // of a nested graph, in terms of the graph that calls it

Dim substituted(const Dim &dim, const Symbols &symbols) {
  return dim.substitute([&](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() != Expr::Kind::symbol) return std::nullopt;
    auto found = symbols.find(leaf.symbol_name());
    return found == symbols.end() ? std::nullopt : std::optional<Expr>(found->second);
  });
}

AttrMap substituted(const AttrMap &attrs, const Symbols &symbols) {
  AttrMap out = attrs;
  for (auto &[name, value] : out) {
    if (auto *dims = std::get_if<std::vector<Dim>>(&value.items)) {
      for (Dim &dim : *dims) dim = substituted(dim, symbols);
    }
  }
  return out;
}

class Inliner {
 public:
  Inliner(Edit &edit, const Graph &original) : edit_(edit) {
    for (const Node &node : original.nodes()) names_.insert(node.name);
  }

  // Adds the nodes that `call` stands for; `inputs` are its operands. Returns its results.
  Result<std::vector<ValueId>> splice(const Node &call, std::span<const ValueId> inputs, const std::string &name) {
    const Graph &body = *call.attrs.find("graph")->second.graph();
    std::map<ValueId, ValueId> values;
    Symbols symbols;
    size_t operand = 0;
    for (std::span<const uint32_t> arguments : {body.inputs(), body.parameters()}) {
      for (uint32_t id : arguments) {
        if (operand == inputs.size())
          return invalid("the graph takes more than the ", inputs.size(), " operands that it is called with");
        const ValueId given = inputs[operand++];
        values[{id, 0}] = given;
        bind(body.find(id)->results[0].dims, edit_.view().type(given).dims, symbols);
      }
    }
    edit_.push_scope(call.annotations);
    for (const Node &node : body.nodes()) KILN_TRY(add(node, symbols, name, values));
    KILN_TRY(edit_.pop_scope());

    std::vector<ValueId> results;
    for (const GraphOutput &output : body.outputs()) results.push_back(values.at(output.value));
    return results;
  }

 private:
  // A symbol is bound by the first bare dimension that names it.
  static void bind(const Shape &formal, const Shape &given, Symbols &symbols) {
    for (size_t d = 0; d < formal.size() && d < given.size(); ++d) {
      if (formal[d].kind() == Expr::Kind::symbol) symbols.try_emplace(formal[d].symbol_name(), given[d]);
    }
  }

  Status add(const Node &node, const Symbols &symbols, const std::string &prefix, std::map<ValueId, ValueId> &values) {
    if (node.kind == Node::Kind::input || node.kind == Node::Kind::parameter) return {};
    const std::string name = str_cat(prefix, ".", node.name);
    if (node.kind == Node::Kind::constant) {
      KILN_ASSIGN((values[{node.id, 0}]), edit_.constant(node.constant, unique(name)));
      return {};
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(values.at(input));
    if (node.op->name == "call") {
      KILN_ASSIGN(const std::vector<ValueId> results, splice(node, inputs, name));
      for (uint32_t i = 0; i < results.size(); ++i) values[{node.id, i}] = results[i];
      return {};
    }
    KILN_ASSIGN(const uint32_t id,
                edit_.add(node.op, inputs, substituted(node.attrs, symbols), unique(name), node.annotations));
    for (uint32_t i = 0; i < node.results.size(); ++i) values[{node.id, i}] = {id, i};
    return {};
  }

  std::string unique(const std::string &name) {
    std::string candidate = name;
    for (int n = 1; !names_.insert(candidate).second; ++n) candidate = str_cat(name, "_", n);
    return candidate;
  }

  Edit &edit_;
  std::set<std::string, std::less<>> names_;
};

Status inline_calls(PassContext &context) {
  std::vector<Node> calls;
  for (const Node &node : context.edit.view().nodes()) {
    if (node.kind == Node::Kind::op && node.op->name == "call") calls.push_back(node);
  }
  Inliner inliner(context.edit, context.edit.view());
  std::map<ValueId, ValueId> replaced;  // results of calls that are inlined by now
  for (Node &call : calls) {
    for (ValueId &input : call.inputs) {
      if (auto found = replaced.find(input); found != replaced.end()) input = found->second;
    }
    Result<std::vector<ValueId>> results = inliner.splice(call, call.inputs, call.name);
    if (!results.ok()) return results.take_status().with_prefix(str_cat("call '", call.name, "': "));
    for (uint32_t i = 0; i < results->size(); ++i) {
      KILN_TRY(context.edit.replace({call.id, i}, (*results)[i]));
      replaced[{call.id, i}] = (*results)[i];
    }
  }
  context.rewrites = calls.size();
  context.done = true;
  return {};
}

}  // namespace

Pass inline_calls_pass() { return {.name = "inline_calls", .stage = Stage::pre_grad, .run = inline_calls}; }

}  // namespace kiln
