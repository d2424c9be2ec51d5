#include "runtime/graph/edit.h"

#include <algorithm>

#include "jit/base/utf8.h"

namespace kiln {
namespace {

// Symbols are known to the graph once a type of its signature has them.
void note_symbols(const TensorType &type, std::map<std::string, SymbolInfo> &symbols) {
  std::set<std::string> names;
  for (const Dim &dim : type.dims) dim.collect_symbols(names);
  for (const Dim &stride : type.strides) stride.collect_symbols(names);
  for (const std::string &name : names) symbols.try_emplace(name);
}

// Results that share their operand's storage say so.
void set_alias(Node &node) {
  if (node.op && (node.op->flags & (op_flags::view | op_flags::mutates)) && !node.inputs.empty())
    node.results[0].alias_of = node.inputs[0];
}

}  // namespace

Edit::Edit(GraphPtr from) : from_(std::move(from)), changed_(!from_) {
  if (from_) first_new_id_ = from_->next_id_;
}

Graph &Edit::begin() {
  if (changed_) return graph_;
  changed_ = true;
  graph_ = *from_;
  graph_.verified_ = false;
  graph_.share_all();
  for (uint32_t i = 0; i < graph_.nodes_.size(); ++i) ranks_.push_back({i, 0});
  return graph_;
}

Status Edit::check_new_name(std::string_view name) const {
  if (name.empty()) return invalid("a name is empty");
  if (!is_utf8(name)) return invalid("a name is not UTF-8");
  for (char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == ':')
      return invalid("name '", name, "': ':' and control characters are not allowed");
  if (const Node *other = graph_.find(name); other && !other->is_name_made)
    return invalid("name '", name, "' is taken already");
  return {};
}

std::string Edit::fresh_name(std::string_view stem) {
  std::string name(stem);
  std::ranges::replace(name, ':', '_');
  if (name.empty()) name = "node";
  uint32_t &count = name_counters_[name];
  std::string candidate = count == 0 ? name : str_cat(name, "_", count);
  while (graph_.find(candidate)) candidate = str_cat(name, "_", ++count);
  return candidate;
}

std::string Edit::name_in_scope(std::string_view stem) {
  const bool named = !scopes_.empty() && !scopes_.back().name.empty();
  return fresh_name(named ? str_cat(scopes_.back().name, ".", stem) : std::string(stem));
}

// The stem with '_' for what no symbol may have, and a number where that is taken. Keys have the name: the host's
// locale is not asked what a letter is.
std::string Edit::fresh_symbol(std::string_view stem) const {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  std::string name = "_";
  for (char c : stem) name += fits(c) ? c : '_';
  std::string candidate = name;
  for (int n = 1; graph_.symbols_.contains(candidate); ++n) candidate = str_cat(name, "_", n);
  return candidate;
}

bool Edit::is_bound(const std::string &symbol) const {
  if (graph_.resolver(symbol)) return true;
  return std::ranges::any_of(graph_.inputs_, [&](uint32_t id) {
    return std::ranges::find(graph_.find(id)->results[0].dims, Expr::symbol(symbol)) !=
           graph_.find(id)->results[0].dims.end();
  });
}

uint32_t Edit::append(Node node) {
  node.id = graph_.next_id_;
  uint32_t id = node.id;
  Rank rank;
  for (ValueId value : node.inputs) {
    Rank operand = ranks_[graph_.position(value.node)];
    rank = std::max(rank, Rank{operand.base, operand.sub + 1});
  }
  ranks_.push_back(rank);
  if (const Node *other = graph_.find(node.name)) graph_.rename(other->id, fresh_name(node.name));
  graph_.append(std::move(node));
  return id;
}

Status Edit::declare_symbol(std::string_view name, const SymbolInfo &info) {
  begin();
  Result<Expr> parsed = Expr::parse(name);
  if (!parsed.ok() || parsed->kind() != Expr::Kind::symbol || parsed->symbol_name() != name)
    return invalid("symbol '", name, "': expected a letter or '_', then letters, digits, '_' or '.'");
  if (info.min < 0 || info.max < info.min || info.divisor < 1)
    return invalid("symbol '", name, "': min is ", info.min, ", max is ", info.max, ", divisor is ", info.divisor,
                   "; expected 0 <= min <= max and divisor >= 1");
  if (info.hint != 0 && (info.hint < info.min || info.hint > info.max || info.hint % info.divisor != 0))
    return invalid("symbol '", name, "': hint ", info.hint, ", expected a multiple of ", info.divisor, " from ",
                   info.min, " to ", info.max);
  graph_.symbols_[std::string(name)] = info;
  return {};
}

Result<ValueId> Edit::placeholder(Node::Kind kind, std::string_view name, TensorType type) {
  begin();
  KILN_TRY(check_new_name(name));
  if (type.strides.empty()) type.strides = row_major_strides(type.dims);
  type.layout = TensorType::Layout::exact;
  type.alias_of = {};
  if (Status status = check_type(type); !status.ok()) return std::move(status).with_prefix(str_cat("'", name, "': "));
  note_symbols(type, graph_.symbols_);
  Node node;
  node.kind = kind;
  node.name = name;
  node.results = {std::move(type)};
  uint32_t id = append(std::move(node));
  (kind == Node::Kind::input ? graph_.inputs_ : graph_.parameters_).push_back(id);
  return ValueId{id, 0};
}

Result<ValueId> Edit::input(std::string_view name, TensorType type) {
  return placeholder(Node::Kind::input, name, std::move(type));
}

Result<ValueId> Edit::parameter(std::string_view name, TensorType type) {
  if (type.dtype == DType::token)
    return invalid("parameter '", name, "' is a token, which cannot be bound; op token begins one");
  return placeholder(Node::Kind::parameter, name, std::move(type));
}

Result<ValueId> Edit::constant(TensorPtr data, std::string_view name) {
  begin();
  std::string full = name.empty() ? name_in_scope("constant") : std::string(name);
  KILN_TRY(check_new_name(full));
  if (!data) return invalid("constant '", full, "' has no data");
  if (Status status = check_tensor(*data); !status.ok())
    return std::move(status).with_prefix(str_cat("constant '", full, "': "));
  Node node;
  node.kind = Node::Kind::constant;
  node.name = std::move(full);
  node.is_name_made = name.empty();
  node.results = {exact_type(data->dtype, Shape(data->shape.begin(), data->shape.end()))};
  node.constant = std::move(data);
  return ValueId{append(std::move(node)), 0};
}

Result<uint32_t> Edit::add(const OpSchema *op, std::span<const ValueId> inputs, AttrMap attrs, std::string_view name,
                           AttrMap annotations) {
  begin();
  if (!op) return invalid("an op node needs an op");
  Node node;
  node.op = op;
  node.name = name.empty() ? name_in_scope(op->name) : std::string(name);
  node.is_name_made = name.empty();
  KILN_TRY(check_new_name(node.name));
  std::vector<TensorType> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!graph_.has(inputs[i])) return invalid("[", op->name, "] operand ", i, " is no value of this graph");
    types.push_back(graph_.type(inputs[i]));
  }
  KILN_TRY(check_operands(*op, types));
  KILN_TRY(complete_attrs(*op, attrs));
  if (op->flags & op_flags::resolves && attrs.find("symbol")->second.text_value().empty())
    attrs.find("symbol")->second = fresh_symbol(name.empty() ? op->name : node.name);
  KILN_ASSIGN(Inferred inferred, infer(*op, types, attrs));
  for (const ResolvedSymbol &symbol : inferred.symbols) {
    if (is_bound(symbol.name))
      return invalid("[", op->name, "] symbol '", symbol.name, "' is bound already; name another, or none");
    graph_.symbols_.try_emplace(symbol.name);
  }
  node.symbols = std::move(inferred.symbols);
  node.inputs.assign(inputs.begin(), inputs.end());
  node.attrs = std::move(attrs);
  node.results = std::move(inferred.results);
  node.equalities = std::move(inferred.equalities);
  KILN_ASSIGN(node.annotations, in_scopes(std::move(annotations)));
  set_alias(node);
  const uint32_t id = append(std::move(node));
  drop_unmarks(id);
  return id;
}

Status Edit::set_attr(uint32_t id, std::string_view name, AttrValue value) {
  begin();
  const Node *node = graph_.find(id);
  if (!node || node->kind != Node::Kind::op)
    return invalid("attribute '", name, "': node ", id, " is no op node of this graph");
  AttrMap attrs = node->attrs;
  attrs.insert_or_assign(std::string(name), std::move(value));
  KILN_TRY(complete_attrs(*node->op, attrs));
  std::vector<TensorType> types;
  for (ValueId input : node->inputs) types.push_back(graph_.type(input));
  KILN_ASSIGN(Inferred inferred, infer(*node->op, types, attrs));
  if (!std::ranges::equal(inferred.results, node->results, &TensorType::same_value_type) ||
      inferred.symbols != node->symbols)
    return error(Code::type_mismatch, "attribute '", name, "' of '", node->name, "' would change the node's results");
  Node &changed = graph_.writable(id);
  changed.attrs = std::move(attrs);
  changed.equalities = std::move(inferred.equalities);
  return {};
}

Status Edit::pop_scope() {
  if (scopes_.empty()) return invalid("no scope is open");
  scopes_.pop_back();
  return {};
}

Status Edit::check_no_cycle(ValueId from, ValueId to) {
  std::vector<uint32_t> users = graph_.users(from);
  if (users.empty()) return {};
  if (!ranks_hold_) renumber();
  auto rank_of = [this](uint32_t id) { return ranks_[graph_.position(id)]; };
  Rank lowest = rank_of(*std::ranges::min_element(users, {}, rank_of));
  // Only nodes that rank as high as a user can be one, or depend on one. A replacement that was just built from what is
  // before `from` ranks lower than all users, and there is nothing to search.
  std::set<uint32_t> seen;
  std::vector<uint32_t> open{to.node};
  while (!open.empty()) {
    uint32_t id = open.back();
    open.pop_back();
    if (rank_of(id) < lowest || !seen.insert(id).second) continue;
    if (std::ranges::find(users, id) != users.end())
      return invalid("replacing '", text_of(graph_, from), "' by '", text_of(graph_, to), "' would close a cycle: '",
                     graph_.find(id)->name, "' uses the former, and the latter depends on it");
    for (ValueId value : graph_.find(id)->inputs) open.push_back(value.node);
  }
  if (rank_of(to.node) >= lowest) ranks_hold_ = false;
  return {};
}

Status Edit::replace(ValueId from, ValueId to) {
  begin();
  if (!graph_.has(from) || !graph_.has(to))
    return invalid("replace: ", graph_.has(from) ? "the new" : "the old", " value is not of this graph");
  if (from == to) return {};
  if (!graph_.type(from).same_value_type(graph_.type(to)))
    return error(Code::type_mismatch, "replacing '", text_of(graph_, from), "' by '", text_of(graph_, to),
                 "': the former is ", graph_.type(from).text(), ", the latter ", graph_.type(to).text());
  KILN_TRY(check_no_cycle(from, to));
  if (to.node >= first_new_id_ && graph_.find(to.node)->kind == Node::Kind::op) {
    const Node &old = *graph_.find(from.node);
    Replaced replaced{.name = old.name, .annotations = old.annotations, .by = to.node, .node = from.node};
    if (!replaced.annotations.empty()) KILN_TRY(inherit_annotations(replaced, graph_.writable(to.node)));
    // One that the edit made, and that stands for nothing yet, is made better: what follows is part of what it is for.
    const bool stands = from.node < first_new_id_ || replacing_.contains(from.node);
    if (stands || !replaced.annotations.empty()) {
      replaced_.push_back(std::move(replaced));
      replacing_.insert(to.node);
    }
  }
  if (graph_.type(from).dtype == DType::token) replaced_tokens_.insert(from);
  std::vector<uint32_t> users = graph_.users(from);
  graph_.use_instead(from, to);
  for (uint32_t id : users) set_alias(graph_.writable(id));
  return {};
}

void Edit::retire(uint32_t id) {
  begin();
  release(id);
  const std::string name = graph_.find(id)->name;
  graph_.retire(id, fresh_name(name));
}

Status Edit::set_outputs(std::vector<GraphOutput> outputs) {
  begin();
  std::set<std::string_view> names;
  for (const GraphOutput &output : outputs) {
    if (output.name.empty() || !is_utf8(output.name)) return invalid("an output's name is empty or not UTF-8");
    if (!names.insert(output.name).second) return invalid("two outputs are named '", output.name, "'");
    if (!graph_.has(output.value)) return invalid("output '", output.name, "' is no value of this graph");
  }
  graph_.outputs_ = std::move(outputs);
  return {};
}

Status Edit::set_output_values(std::span<const ValueId> values) {
  begin();
  std::vector<GraphOutput> outputs;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_there = i < graph_.outputs_.size();
    outputs.push_back(is_there ? graph_.outputs_[i] : GraphOutput{str_cat("output", i), {}});
    outputs.back().value = values[i];
  }
  return set_outputs(std::move(outputs));
}

Status Edit::add_output(GraphOutput output) {
  begin();
  std::vector<GraphOutput> outputs = graph_.outputs_;
  outputs.push_back(std::move(output));
  return set_outputs(std::move(outputs));
}

Status Edit::check_output_type(const GraphOutput &output, const TensorType &type) const {
  if (!view().has(output.value)) return {};  // which set_outputs() says
  const TensorType &its = view().type(output.value);
  if (its.same_value_type(type)) return {};
  return error(Code::type_mismatch, "output '", output.name, "' is declared as ", type.text(), ", its value '",
               text_of(view(), output.value), "' is ", its.text(),
               its.device == type.device ? "" : str_cat("; on device ", type.device, ", and on ", its.device));
}

}  // namespace kiln
