#include <algorithm>
#include <map>
#include <set>

#include "runtime/graph/annotations.h"
#include "runtime/ops/nested.h"
#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

// That calls stand for: graphs that call one another twice each double with each level.
constexpr uint64_t most_nodes = 500'000, far_too_many = uint64_t{1} << 40;

using Stays = std::function<bool(const Node &)>;

uint64_t nodes_of_calls(const Graph &graph, std::map<const Graph *, uint64_t> &known) {
  if (const auto found = known.find(&graph); found != known.end()) return found->second;
  uint64_t count = 0;
  for (const Node &node : graph.nodes()) {
    if (!is_call(node)) continue;
    const Graph &body = called_graph(node);
    count = std::min(count + body.nodes().size() + nodes_of_calls(body, known), far_too_many);
  }
  return known[&graph] = count;
}

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
  Inliner(Edit &edit, const Graph &original, const Stays &stays) : edit_(edit), stays_(stays) {
    for (const Node &node : original.nodes()) names_.insert(node.name);
  }

  // Adds the nodes that `call` stands for; `inputs` are its operands, one for each input of its graph (inference saw to
  // that; a nested graph has no parameters). Returns its results.
  Result<std::vector<ValueId>> splice(const Node &call, std::span<const ValueId> inputs, const std::string &name) {
    const Graph &body = called_graph(call);
    std::map<ValueId, ValueId> values;
    Symbols symbols;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const uint32_t id = body.inputs()[i];
      values[{id, 0}] = inputs[i];
      bind(body.find(id)->results[0].dims, edit_.view().type(inputs[i]).dims, symbols);
    }
    AttrMap inherited = call.annotations;
    std::erase_if(inherited, [](const auto &annotation) { return marks_an_end(annotation.first); });
    edit_.push_scope(inherited);
    for (const Node &node : body.nodes()) KILN_TRY(add(node, inherited, symbols, name, values));
    KILN_TRY(edit_.pop_scope());

    std::vector<ValueId> results;
    for (size_t i = 0; i < call.results.size(); ++i) results.push_back(values.at(body.outputs()[i].value));
    return results;
  }

 private:
  // A symbol is bound by the first bare dimension that names it.
  static void bind(const Shape &formal, const Shape &given, Symbols &symbols) {
    for (size_t d = 0; d < formal.size() && d < given.size(); ++d) {
      if (formal[d].kind() == Expr::Kind::symbol) symbols.try_emplace(formal[d].symbol_name(), given[d]);
    }
  }

  // What a call's marks say of its end they say of the nodes that its results come from now; of the outermost call,
  // replacing it does that.
  Status mark_ends(const Node &call, std::span<const ValueId> inputs, std::span<const ValueId> results) {
    for (const auto &[key, value] : call.annotations) {
      if (!marks_an_end(key)) continue;
      for (const ValueId result : results)
        if (std::ranges::find(inputs, result) == inputs.end() && edit_.view().find(result.node)->op)
          KILN_TRY(edit_.annotate(result.node, key, value));
    }
    return {};
  }

  // `symbols` gets those that the node resolves: a copy of it resolves a fresh one.
  Status add(const Node &node, const AttrMap &inherited, Symbols &symbols, const std::string &prefix,
             std::map<ValueId, ValueId> &values) {
    if (node.kind == Node::Kind::input) return {};
    const std::string name = str_cat(prefix, ".", node.name);
    if (node.kind == Node::Kind::constant) {
      KILN_ASSIGN((values[{node.id, 0}]), edit_.constant(node.constant, unique(name)));
      return {};
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(values.at(input));
    if (is_call(node)) {
      Node inner = node;
      for (const auto &[key, value] : inherited)
        if (may_pass_on(key, inherited, inner.annotations)) inner.annotations.emplace(key, value);
      if (!stays_ || !stays_(inner)) {
        KILN_ASSIGN(const std::vector<ValueId> results, splice(inner, inputs, name));
        for (uint32_t i = 0; i < results.size(); ++i) values[{node.id, i}] = results[i];
        return mark_ends(inner, inputs, results);
      }
    }
    AttrMap attrs = substituted(node.attrs, symbols);
    if (node.op->flags & op_flags::resolves) attrs.insert_or_assign("symbol", "");
    KILN_ASSIGN(const uint32_t id, edit_.add(node.op, inputs, std::move(attrs), unique(name), node.annotations));
    for (size_t k = 0; k < node.symbols.size(); ++k)
      symbols[node.symbols[k].name] = Expr::symbol(edit_.view().find(id)->symbols[k].name);
    for (uint32_t i = 0; i < node.results.size(); ++i) values[{node.id, i}] = {id, i};
    return {};
  }

  std::string unique(const std::string &name) {
    std::string candidate = name;
    for (int n = 1; !names_.insert(candidate).second; ++n) candidate = str_cat(name, "_", n);
    return candidate;
  }

  Edit &edit_;
  const Stays &stays_;
  std::set<std::string, std::less<>> names_;
};

// Makes `results` what the call's users rely on. Dims that the call says in other terms than the nodes in it (the two
// are equal by a check of the call's) are put in its terms. And what a call returns has storage of its own: a result
// that an operand or another result already is, or is a view of, becomes a copy. Nodes of the call have ids from
// `first_id` on.
Status adapt(Edit &edit, const OpTable &ops, const Node &call, uint32_t first_id, std::vector<ValueId> &results) {
  std::set<ValueId> taken;
  for (size_t i = 0; i < results.size(); ++i) {
    if (edit.view().type(results[i]).dtype == DType::token) continue;  // which has no storage
    const ValueId root = edit.view().storage_of(results[i]);
    if (const Shape &dims = call.results[i].dims; edit.view().type(results[i]).dims != dims) {
      KILN_ASSIGN(results[i].node, edit.add(ops.find("reshape"), std::span(&results[i], 1), {{"shape", dims}}));
      results[i].output = 0;
    }
    if (root.node >= first_id && taken.insert(root).second) continue;
    KILN_ASSIGN(results[i].node, edit.add(ops.find("clone"), std::span(&results[i], 1)));
    results[i].output = 0;
  }
  return {};
}

Status inline_call(Edit &edit, const OpTable &ops, Inliner &inliner, Node call, std::map<ValueId, ValueId> &replaced) {
  for (ValueId &input : call.inputs) {
    if (auto found = replaced.find(input); found != replaced.end()) input = found->second;
  }
  const uint32_t first_id = edit.view().next_id();
  KILN_ASSIGN(std::vector<ValueId> results, inliner.splice(call, call.inputs, call.name));
  KILN_TRY(adapt(edit, ops, call, first_id, results));
  edit.release(call.id);
  for (uint32_t i = 0; i < results.size(); ++i) {
    KILN_TRY(edit.replace({call.id, i}, results[i]));
    replaced[{call.id, i}] = results[i];
  }
  return {};
}

}  // namespace

Result<GraphPtr> inline_calls(GraphPtr graph, const OpTable &ops, const Stays &stays) {
  if (std::map<const Graph *, uint64_t> known; nodes_of_calls(*graph, known) > most_nodes)
    return invalid("the graph's calls stand for more than ", most_nodes, " nodes");
  std::vector<Node> calls;
  for (const Node &node : graph->nodes())
    if (is_call(node) && !(stays && stays(node))) calls.push_back(node);
  if (calls.empty()) return graph;
  Edit edit(graph);
  Inliner inliner(edit, *graph, stays);
  std::map<ValueId, ValueId> replaced;  // results of calls that are inlined by now
  for (const Node &call : calls) {
    Status status = inline_call(edit, ops, inliner, call, replaced);
    if (!status.ok()) return std::move(status).with_prefix(str_cat("call '", call.name, "': "));
  }
  return edit.finish(false);
}

}  // namespace kiln
