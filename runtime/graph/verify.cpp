// The invariants of a graph, each a function of its own. They trust nothing but that Graph's maps match its nodes.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "runtime/graph/graph.h"
#include "runtime/graph/nesting.h"
#include "runtime/graph/verify_part.h"

namespace kiln {
namespace {

template <class... Parts>
Status broken(std::string_view invariant, const Parts &...parts) {
  return error(Code::invariant, "invariant '", invariant, "' broken ", parts...);
}
template <class... Parts>
Status broken_at(const Node &node, std::string_view invariant, const Parts &...parts) {
  return broken(invariant, "at node '", node.name, "': ", parts...).with_node(node.name);
}

Status check_names(const Graph &g) {
  for (const Node &node : g.nodes()) {
    if (node.name.empty()) return broken("names", "at node #", node.id, ": it has no name");
    if (g.find(node.name) != &node) return broken_at(node, "names", "another node has this name");
  }
  return {};
}

Status check_outputs(const Graph &g) {
  std::set<std::string_view> names;
  for (const GraphOutput &output : g.outputs()) {
    if (output.name.empty() || !names.insert(output.name).second)
      return broken("outputs", "at output '", output.name, "': its name is empty or taken");
    if (!g.has(output.value)) return broken("outputs", "at output '", output.name, "': its value does not exist");
  }
  return {};
}

Status check_order(const Graph &g) {
  for (const Node &node : g.nodes()) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!g.has(node.inputs[i])) return broken_at(node, "order", "operand ", i, " does not exist");
      const Node *operand = g.find(node.inputs[i].node);
      if (g.position(operand->id) >= g.position(node.id))
        return broken_at(node, "order", "operand ", i, ", '", operand->name, "', comes after it");
    }
    if (node.kind != Node::Kind::op) continue;
    for (const Node *resolver : g.resolvers_for(node))
      if (g.position(resolver->id) >= g.position(node.id))
        return broken_at(node, "order", "'", resolver->name,
                         "', which resolves a symbol that it speaks of, comes after it");
  }
  return {};
}

std::vector<TensorType> operand_types(const Graph &g, const Node &node) {
  std::vector<TensorType> types;
  types.reserve(node.inputs.size());
  for (ValueId value : node.inputs) types.push_back(g.type(value));
  return types;
}

Status check_schema(const Graph &g, const Node &node) {
  if ((node.kind == Node::Kind::op) != (node.op != nullptr))
    return broken_at(node, "schema", "an op node has an op, no other has one");
  if (!node.op) return {};
  if (Status s = check_operands(*node.op, operand_types(g, node)); !s.ok())
    return broken_at(node, "schema", s.message());
  AttrMap attrs = node.attrs;
  if (Status s = complete_attrs(*node.op, attrs); !s.ok()) return broken_at(node, "schema", s.message());
  if (attrs != node.attrs) return broken_at(node, "schema", "its attributes are not complete");
  return {};
}

Status check_placeholder(const Node &node) {
  bool is_constant = node.kind == Node::Kind::constant;
  if (!node.inputs.empty() || node.results.size() != 1)
    return broken_at(node, "types", "it has no operands and one result");
  if (node.results[0].layout != TensorType::Layout::exact) return broken_at(node, "types", "its layout must be exact");
  if (is_constant != (node.constant != nullptr)) return broken_at(node, "types", "a constant has data, no other has");
  if (Status s = check_type(node.results[0]); !s.ok()) return broken_at(node, "types", s.message());
  if (!is_constant) return {};
  const TensorData &data = *node.constant;
  if (Status s = check_tensor(data); !s.ok()) return broken_at(node, "types", s.message());
  TensorType type = make_type(data.dtype, Shape(data.shape.begin(), data.shape.end()));
  if (!type.same_value_type(node.results[0]))
    return broken_at(node, "types", "recorded ", node.results[0].text(), ", its data is ", type.text());
  return {};
}

Status check_types(const Graph &g, const Node &node) {
  if (!node.op) return check_placeholder(node);
  Result<Inferred> inferred = infer(*node.op, operand_types(g, node), node.attrs);
  if (!inferred.ok()) return broken_at(node, "types", inferred.status().message());
  if (inferred->results.size() != node.results.size())
    return broken_at(node, "types", "recorded ", node.results.size(), " results, inferred ", inferred->results.size());
  for (size_t i = 0; i < node.results.size(); ++i)
    if (!node.results[i].same_value_type(inferred->results[i]))
      return broken_at(node, "types", "recorded ", node.results[i].text(), ", inferred ", inferred->results[i].text());
  if (inferred->equalities != node.equalities)
    return broken_at(node, "types", "recorded equalities are not the inferred ones");
  if (inferred->symbols != node.symbols) return broken_at(node, "types", "recorded symbols are not the inferred ones");
  return {};
}

// Storage is shared where an op says so, and nowhere else.
Status check_storage(const Graph &g, const Node &node) {
  for (size_t i = 0; i < node.results.size(); ++i) {
    bool shares = i == 0 && node.op && !node.inputs.empty() && (node.op->flags & (op_flags::view | op_flags::mutates));
    ValueId expected = shares ? node.inputs[0] : ValueId();
    if (node.results[i].alias_of != expected)
      return broken_at(node, "storage", "result ", i, " is recorded as a view of ",
                       node.results[i].alias_of ? text_of(g, node.results[i].alias_of) : "nothing", ", it is one of ",
                       expected ? text_of(g, expected) : "nothing");
  }
  return {};
}

// Of the nodes that no graph before had: what they and the types of their operands say.
Status check_new_nodes(const Graph &g, Status (*check)(const Graph &, const Node &)) {
  for (const Node &node : g.nodes())
    if (!node.checked) KILN_TRY(check(g, node));
  return {};
}

Status check_layout(const Graph &g, const GraphOutput &output, bool is_nested) {
  const OutputLayout &layout = output.layout;
  const auto fail = [&](const auto &...what) { return broken("outputs", "at output '", output.name, "': ", what...); };
  const TensorType &type = g.type(output.value);
  if (layout.kind == OutputLayout::Kind::strided && layout.strides.size() != type.rank())
    return fail(layout.strides.size(), " strides for rank ", type.rank());
  if (layout.kind == OutputLayout::Kind::row_major) return {};
  if (is_nested) return fail("that of a nested graph is row-major");
  if (layout.kind == OutputLayout::Kind::any) return {};
  for (const Dim &dim : type.dims) {
    std::set<std::string> used;
    dim.collect_symbols(used);
    for (const std::string &symbol : used)
      if (g.resolver(symbol))
        return fail("a run tells its size, '", symbol, "'; it can be neither a view nor have strides of its own");
  }
  if (layout.kind == OutputLayout::Kind::view) {
    const Node &root = *g.find(g.storage_of(output.value).node);
    if (root.kind == Node::Kind::input) return {};
    const std::string_view what = root.kind == Node::Kind::parameter ? "parameter" : "constant";
    return fail("it is to be a view of an input, and '", text_of(g, output.value), "' is ",
                root.kind == Node::Kind::op ? "none" : str_cat("of ", what, " '", root.name, "'"));
  }
  Status written = check_written(type.dims, layout.strides);
  return written.ok() ? written : fail(written.message());
}

// copy_ overwrites an input: once, after all that reads it, and what it yields is the input as it is then.
Status check_mutation(const Graph &g, bool is_nested) {
  std::unordered_map<uint32_t, const Node *> writers;  // by input
  for (const Node &node : g.nodes()) {
    for (ValueId value : node.inputs) {
      const Node &made_by = *g.find(value.node);
      if (made_by.op && (made_by.op->flags & op_flags::mutates))
        return broken_at(node, "mutation", "it reads the result of '", made_by.name, "', which only an output may");
      if (auto writer = writers.find(g.storage_of(value).node); writer != writers.end())
        return broken_at(node, "mutation", "it reads input '", g.find(writer->first)->name, "' after '",
                         writer->second->name, "' has written it");
    }
    if (!node.op || !(node.op->flags & op_flags::mutates)) continue;
    if (is_nested) return broken_at(node, "mutation", "a nested graph may not write its inputs");
    const Node &destination = *g.find(node.inputs.at(0).node);
    if (destination.kind != Node::Kind::input)
      return broken_at(node, "mutation", "it writes '", destination.name, "', which is no input");
    if (const Status written = check_written(destination.results[0].dims, destination.results[0].strides);
        !written.ok())
      return broken_at(node, "mutation", "it writes '", destination.name, "', whose ", written.message());
    writers.emplace(destination.id, &node);
  }
  for (const GraphOutput &output : g.outputs()) {
    const Node &made_by = *g.find(output.value.node);
    auto writer = writers.find(g.storage_of(output.value).node);
    if (writer != writers.end() && writer->second != &made_by)
      return broken("mutation", "at output '", output.name, "': it is a view of input '", g.find(writer->first)->name,
                    "', which '", writer->second->name, "' writes");
  }
  return {};
}

void collect(const Shape &dims, std::set<std::string> &out) {
  for (const Dim &dim : dims) dim.collect_symbols(out);
}

Status check_symbols(const Graph &g, bool is_part) {
  std::set<std::string> bound;
  for (uint32_t id : g.inputs())
    for (const Dim &dim : g.find(id)->results[0].dims)
      if (dim.kind() == Expr::Kind::symbol) bound.insert(dim.symbol_name());
  for (const auto &[name, info] : g.symbols())
    if (is_part && !g.resolver(name)) bound.insert(name);
  const std::set<std::string> by_inputs = bound;
  for (const Node &node : g.nodes())
    for (const ResolvedSymbol &symbol : node.symbols)
      if (!bound.insert(symbol.name).second)
        return broken_at(node, "symbols", "symbol '", symbol.name, "' is bound already");
  for (const auto &[name, info] : g.symbols())
    if (!bound.contains(name))
      return broken("symbols", "by symbol '", name, "': no input has it as a dimension, so nothing binds it");
  for (const GraphOutput &output : g.outputs()) {
    std::set<std::string> used;
    collect(output.layout.strides, used);
    for (const std::string &name : used)
      if (!by_inputs.contains(name) || !g.symbols().contains(name))
        return broken("symbols", "at output '", output.name, "': no input has symbol '", name,
                      "' as a dimension, so nothing binds it");
  }
  for (const Node &node : g.nodes()) {
    // What a run resolves, arguments cannot speak of; nodes can, where order allows it.
    const std::set<std::string> &known = node.kind == Node::Kind::op ? bound : by_inputs;
    const auto check = [&](const std::set<std::string> &used, std::string_view attr) -> Status {
      for (const std::string &name : used)
        if (!known.contains(name) || !g.symbols().contains(name))
          return broken_at(node, "symbols",
                           attr.empty() || !node.op ? "" : str_cat("[", node.op->name, "] ", attr, ": "),
                           "no input has symbol '", name, "' as a dimension, so nothing binds it");
      return {};
    };
    for (const auto &[name, value] : node.attrs) {
      std::set<std::string> used;
      if (value.kind() == AttrKind::dim) collect(value.dim_list(), used);
      KILN_TRY(check(used, name));
    }
    std::set<std::string> used;
    for (const TensorType &type : node.results) {
      collect(type.dims, used);
      collect(type.strides, used);
    }
    KILN_TRY(check(used, ""));
  }
  return {};
}

Status verify_at(const Graph &g, int depth, std::set<const Graph *> &done, bool is_part = false) {
  if (depth > deepest_nesting) return broken("nesting", "by the graph: nested deeper than ", deepest_nesting);
  // Each relies on those before it.
  KILN_TRY(check_names(g));
  KILN_TRY(check_outputs(g));
  KILN_TRY(check_order(g));
  KILN_TRY(check_new_nodes(g, check_schema));
  for (const Node &node : g.nodes()) {
    for (const auto &[name, value] : node.attrs) {
      if (value.kind() != AttrKind::graph) continue;
      for (const GraphPtr &nested : std::get<std::vector<GraphPtr>>(value.items)) {
        if (!nested) return broken_at(node, "schema", "attribute '", name, "' is no graph");
        if (!done.insert(nested.get()).second) continue;
        if (Status s = verify_at(*nested, depth + 1, done); !s.ok())
          return std::move(s).with_prefix(str_cat("in attribute '", name, "' of node '", node.name, "': "));
      }
    }
  }
  KILN_TRY(check_new_nodes(g, check_types));
  KILN_TRY(check_new_nodes(g, check_storage));
  for (const Node &node : g.nodes()) node.checked.set();
  for (const GraphOutput &output : g.outputs()) KILN_TRY(check_layout(g, output, depth > 0));
  if (depth > 0)
    for (const uint32_t id : g.inputs())
      if (g.find(id)->annotations.contains("kiln.donate"))
        return broken_at(*g.find(id), "annotations", "'kiln.donate' is for inputs of the outermost graph");
  KILN_TRY(check_mutation(g, depth > 0));
  return check_symbols(g, is_part);
}

// ---- the signature

// Without those that a run resolves.
std::map<std::string, SymbolInfo> argument_symbols(const Graph &g) {
  std::map<std::string, SymbolInfo> symbols = g.symbols();
  std::erase_if(symbols, [&](const auto &symbol) { return g.resolver(symbol.first); });
  return symbols;
}

Status changed(std::string_view what) { return broken("signature", "by the graph: ", what); }

// The inputs that copy_ writes, by name.
std::set<std::string_view> written_inputs(const Graph &g) {
  std::set<std::string_view> names;
  for (const Node &node : g.nodes())
    if (node.op && (node.op->flags & op_flags::mutates)) names.insert(g.find(node.inputs[0].node)->name);
  return names;
}

Status check_same_arguments(const Graph &before, const Graph &after, std::span<const uint32_t> old_ids,
                            std::span<const uint32_t> new_ids, std::string_view what) {
  if (old_ids.size() != new_ids.size())
    return changed(str_cat(what, "s were ", old_ids.size(), " and are ", new_ids.size()));
  for (size_t i = 0; i < old_ids.size(); ++i) {
    const Node &a = *before.find(old_ids[i]), &b = *after.find(new_ids[i]);
    const TensorType &x = a.results[0], &y = b.results[0];
    if (a.name != b.name) return changed(str_cat(what, " ", i, " was '", a.name, "' and is '", b.name, "'"));
    if (!x.same_value_type(y) || x.strides != y.strides)
      return changed(str_cat(what, " '", a.name, "' was ", x.text(), " and is ", y.text(),
                             x.same_value_type(y) ? ", with other strides" : ""));
    if (a.annotations.contains("kiln.donate") != b.annotations.contains("kiln.donate"))
      return changed(str_cat(what, " '", a.name, "' is donated, or is not any more"));
  }
  return {};
}

// The input, parameter or constant that an output lies in, or else a storage of its own; by name, so that two graphs
// compare.
std::string owner_of(const Graph &g, ValueId value) {
  const Node &owner = *g.find(g.storage_of(value).node);
  return owner.kind == Node::Kind::op ? std::string() : owner.name;
}

}  // namespace

Status verify(const Graph &graph) {
  if (graph.is_verified()) return {};
  std::set<const Graph *> done;
  return verify_at(graph, 0, done);
}

Status verify_part(const Graph &graph) {
  std::set<const Graph *> done;
  return verify_at(graph, 0, done, true);
}

Status verify_same_signature(const Graph &before, const Graph &after) {
  KILN_TRY(check_same_arguments(before, after, before.inputs(), after.inputs(), "input"));
  KILN_TRY(check_same_arguments(before, after, before.parameters(), after.parameters(), "parameter"));
  if (argument_symbols(before) != argument_symbols(after)) return changed("the symbols or their ranges are others");
  const std::set<std::string_view> written_before = written_inputs(before), written = written_inputs(after);
  for (std::string_view name : written)
    if (!written_before.contains(name)) return changed(str_cat("input '", name, "' is written, and was not"));
  for (std::string_view name : written_before)
    if (!written.contains(name)) return changed(str_cat("input '", name, "' was written, and is not"));
  if (before.outputs().size() != after.outputs().size())
    return changed(str_cat("outputs were ", before.outputs().size(), " and are ", after.outputs().size()));
  for (size_t i = 0; i < before.outputs().size(); ++i) {
    const GraphOutput &a = before.outputs()[i], &b = after.outputs()[i];
    const TensorType &x = before.type(a.value), &y = after.type(b.value);
    if (a.name != b.name) return changed(str_cat("output ", i, " was '", a.name, "' and is '", b.name, "'"));
    if (!x.same_value_type(y)) return changed(str_cat("output '", a.name, "' was ", x.text(), " and is ", y.text()));
    if (a.layout != b.layout) return changed(str_cat("output '", a.name, "' has other strides, or is a view or not"));
  }
  return {};
}

std::vector<size_t> outputs_that_came_to_share(const Graph &before, const Graph &after) {
  std::vector<size_t> shared;
  std::map<ValueId, ValueId> first;  // by the storage that an output has in `after`: the one that it had in `before`
  for (size_t i = 0; i < before.outputs().size(); ++i) {
    const ValueId was = before.outputs()[i].value, is = after.outputs()[i].value;
    if (after.type(is).dtype == DType::token) continue;  // which has none
    const std::string owner = owner_of(after, is);
    const bool in_an_argument = !owner.empty() && owner != owner_of(before, was);
    const auto other = in_an_argument ? first.end() : first.emplace(after.storage_of(is), before.storage_of(was)).first;
    if (in_an_argument || other->second != before.storage_of(was)) shared.push_back(i);
  }
  return shared;
}

}  // namespace kiln
