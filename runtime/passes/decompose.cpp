#include <map>
#include <set>

#include "runtime/ops/op.h"
#include "runtime/ops/registered.h"
#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

// The nodes of `graph` that a decomposition replaces.
std::vector<const Node *> composites(const Graph &graph) {
  std::vector<const Node *> found;
  for (const Node &node : graph.nodes())
    if (node.kind == Node::Kind::op && op_of(node).decompose) found.push_back(&node);
  return found;
}

// A decomposition may know a dim better than the node's own type does (an integer that a symbol must equal at a call):
// the value by that type's names.
Result<ValueId> with_dims_of(const TensorType &type, DecomposeContext &context, ValueId value) {
  if (context.type(value).dims == type.dims) return value;
  return context.add("reshape", {value}, {{"shape", AttrValue(type.dims)}});
}

// The inputs that the graph writes in the end.
std::set<uint32_t> written_inputs(const Graph &graph) {
  std::set<uint32_t> inputs;
  for (const Node &node : graph.nodes())
    if (node.op && (node.op->flags & op_flags::mutates)) inputs.insert(node.inputs[0].node);
  return inputs;
}

// A composite op's results are values of their own, though it may be made of views alone: one that would change when
// its input is written is copied.
Result<ValueId> own_value(DecomposeContext &context, const std::set<uint32_t> &written, ValueId value) {
  if (!written.contains(context.edit.view().storage_of(value).node)) return value;
  return context.add("clone", {value});
}

Result<GraphPtr> one_round(const GraphPtr &graph, std::span<const Node *const> nodes, const OpTable &ops) {
  Edit edit(graph);
  std::map<ValueId, ValueId> replaced;
  const std::set<uint32_t> written = written_inputs(*graph);
  for (const Node *original : nodes) {
    Node node = *original;
    for (ValueId &input : node.inputs) {
      if (auto found = replaced.find(input); found != replaced.end()) input = found->second;
    }
    DecomposeContext context{.op = op_of(node), .edit = edit, .ops = ops, .node = node, .results = {}};
    edit.push_scope(node.annotations, node.name);
    Status status = op_of(node).decompose(context);
    for (uint32_t i = 0; status.ok() && i < context.results.size(); ++i) {
      Result<ValueId> result = with_dims_of(node.results[i], context, context.results[i]);
      if (result.ok()) result = own_value(context, written, *result);
      status = result.ok() ? edit.replace({node.id, i}, *result) : result.take_status();
      if (status.ok()) replaced[{node.id, i}] = *result;
    }
    KILN_TRY(edit.pop_scope());
    if (!status.ok())
      return std::move(status)
          .with_prefix(str_cat("decomposing '", node.name, "' [", node.op->name, "]: "))
          .with_node(node.name);
  }
  return edit.finish(false);
}

}  // namespace

Result<GraphPtr> decompose(GraphPtr graph, const OpTable &ops) {
  for (int round = 0;; ++round) {
    const std::vector<const Node *> nodes = composites(*graph);
    ask_for_ops(*graph, ops);
    if (nodes.empty()) return graph;
    if (round == most_decompositions)
      return error(registered(*nodes[0]->op) ? Code::plugin_failed : Code::internal, "[", nodes[0]->op->name,
                   "] its decomposition has not ended ", most_decompositions, " deep, at node '", nodes[0]->name,
                   "': it comes back to itself, or is made of too many others");
    KILN_ASSIGN(graph, one_round(graph, nodes, ops));
    // What composites carry graphs for they call, and those nodes have not been widened.
    KILN_ASSIGN(const GraphPtr inlined, inline_calls(graph, ops));
    if (inlined == graph) continue;
    KILN_ASSIGN(graph, widen(inlined, ops));
  }
}

}  // namespace kiln
