#include "tests/backend/random/drawing.h"

#include <algorithm>

#include "runtime/ops/nested.h"
#include "tests/backend/harness.h"
#include "tests/backend/random/oracle.h"

namespace kiln::testing {
namespace {

constexpr double largest = 1e4, largest_integer = 1e6;  // beyond it a value is out of hand
constexpr int64_t most_laid_out = 1 << 18;              // elements, of a tensor whose size a run tells

AttrMap attrs_at(AttrMap attrs, const SymbolSizes &sizes) {
  for (auto &[name, value] : attrs)
    if (auto *dims = std::get_if<std::vector<Dim>>(&value.items)) {
      const std::vector<int64_t> now = shape_of(*dims, sizes);
      dims->assign(now.begin(), now.end());
    }
  return attrs;
}

// One node on its own, at the sizes of one call.
Result<std::vector<RefTensor>> run_node(const Op &op, const AttrMap &attrs, std::span<const RefTensor *const> operands,
                                        const SymbolSizes &sizes) {
  Edit edit;
  std::vector<ValueId> ids;
  for (size_t k = 0; k < operands.size(); ++k) {
    const std::vector<int64_t> &shape = operands[k]->shape;
    KILN_ASSIGN(ValueId id, edit.input(str_cat("x", k), make_type(operands[k]->dtype, {shape.begin(), shape.end()})));
    ids.push_back(id);
  }
  KILN_ASSIGN(uint32_t node, edit.add(&op, ids, attrs_at(attrs, sizes)));
  std::vector<ValueId> results;
  for (uint32_t k = 0; k < edit.view().find(node)->results.size(); ++k) results.push_back({node, k});
  KILN_TRY(edit.set_output_values(results));
  KILN_ASSIGN(GraphPtr graph, edit.finish(false));
  return run_reference(*graph, operands);
}

bool tame(const RefTensor &t) {
  return std::ranges::all_of(t.f, [](double x) { return std::abs(x) <= largest; }) &&
         std::ranges::all_of(t.i, [](int64_t x) { return -largest_integer <= x && x <= largest_integer; });
}

}  // namespace

Status Drawing::start() {
  std::vector<std::string> symbols;
  for (const auto &[name, size] : palette_.calls.front()) symbols.push_back(name);
  for (const std::string &symbol : symbols) {
    Shape shape = proposer_.random_shape(2);
    shape.insert(shape.begin() + dice_.below(static_cast<int64_t>(shape.size()) + 1), Expr::symbol(symbol));
    KILN_TRY(add_leaf(palette_.type(dice_), shape, {Expr::symbol(symbol)}));
    if (dice_.chance(0.2)) KILN_TRY(declare(symbol));
  }
  for (int64_t more = dice_.between(symbols.empty() ? 1 : 0, 2); more > 0; --more)
    KILN_TRY(add_leaf(palette_.type(dice_), proposer_.random_shape(4)));
  return {};
}

Result<bool> Drawing::add_node(const Op &op, int most_tries) {
  if (op.flags & op_flags::mutates) return note_write_back(op);
  for (int tries = 0; tries < most_tries; ++tries) {
    const std::optional<Proposal> proposal = proposer_.propose(op);
    if (!proposal) continue;
    std::vector<std::vector<RefTensor>> results;
    if (!evaluate(*proposal, results)) continue;
    KILN_TRY(commit(*proposal, results));
    return true;
  }
  return false;
}

Result<GraphPtr> Drawing::finish() {
  if (palette_.nested) KILN_TRY(add_sums());
  std::vector<GraphOutput> outputs;
  auto add = [&](ValueId value) { outputs.push_back({str_cat("y", outputs.size()), value}); };
  for (const Drawn &value : values_) {
    if (palette_.nested && palette_.resolves(value.type)) continue;
    const bool leaf = edit_.view().find(value.id.node)->kind != Node::Kind::op;
    if (leaf ? dice_.chance(0.03) : value.uses == 0 || dice_.chance(0.12)) add(value.id);
  }
  if (outputs.empty()) add(values_.back().id);
  if (dice_.chance(0.03)) add(dice_.pick(outputs).value);  // one value twice
  KILN_TRY(edit_.set_outputs(outputs));
  KILN_TRY(add_write_backs(std::move(outputs)));
  return edit_.finish();
}

Status Drawing::add_sums() {
  for (size_t k = 0; k < values_.size(); ++k) {
    if (values_[k].uses > 0 || !palette_.resolves(values_[k].type)) continue;
    const Proposal sum{find_op("sum"), {proposer_.existing(k)}, {}};
    std::vector<std::vector<RefTensor>> results;
    if (evaluate(sum, results)) KILN_TRY(commit(sum, results));
  }
  return {};
}

// What writes an input goes last, where nothing forbids it.
Status Drawing::add_write_backs(std::vector<GraphOutput> outputs) {
  for (const auto &[op, dest, source] : write_backs_) {
    Edit with = edit_;
    Result<uint32_t> node = with.add(op, std::vector<ValueId>{dest, source});
    if (!node.ok()) continue;
    std::vector<GraphOutput> more = outputs;
    if (dice_.chance(0.5)) more.push_back({str_cat("y", more.size()), ValueId{*node, 0}});
    KILN_TRY(with.set_outputs(more));
    if (!with.finish().ok()) continue;
    edit_ = std::move(with);
    outputs = std::move(more);
  }
  return {};
}

std::vector<TensorData> Drawing::arguments(size_t call) const {
  std::vector<TensorData> all;
  for (const auto *leaves : {&inputs_, &parameters_})
    for (const std::vector<RefTensor> &data : *leaves) all.push_back(from_reference(data[call]));
  return all;
}

Status Drawing::add_leaf(DType dtype, const Shape &shape, const Shape &otherwise) {
  std::optional<Operand> leaf = proposer_.leaf(make_type(dtype, shape), Sample());
  if (!leaf) leaf = proposer_.leaf(make_type(dtype, otherwise), Sample());
  if (!leaf) return invalid("a leaf of ", text_of(shape), " is too large");
  if (!otherwise.empty()) leaf->kind = Operand::Kind::input;
  return add_leaf(*leaf).take_status();
}

Status Drawing::declare(const std::string &symbol) {
  SymbolInfo info{.min = INT64_MAX, .max = 0};
  for (const SymbolSizes &sizes : palette_.calls) {
    info.min = std::min(info.min, sizes.at(symbol));
    info.max = std::max(info.max, sizes.at(symbol));
  }
  info.hint = info.max;
  return edit_.declare_symbol(symbol, info);
}

Result<ValueId> Drawing::add_leaf(const Operand &leaf) {
  ValueId id;
  if (leaf.kind == Operand::Kind::constant) {
    KILN_ASSIGN(id, edit_.constant(std::make_shared<TensorData>(from_reference(leaf.data[0]))));
  } else {
    const bool input = leaf.kind == Operand::Kind::input;
    auto &leaves = input ? inputs_ : parameters_;
    const std::string name = str_cat(input ? "x" : "w", leaves.size());
    KILN_ASSIGN(id, input ? edit_.input(name, leaf.type) : edit_.parameter(name, leaf.type));
    leaves.push_back(leaf.data);
  }
  values_.push_back({id, leaf.type, leaf.data});
  return id;
}

bool Drawing::evaluate(const Proposal &proposal, std::vector<std::vector<RefTensor>> &results) {
  std::vector<TensorType> types;
  for (const Operand &operand : proposal.operands) types.push_back(operand.type);
  AttrMap attrs = proposal.attrs;
  if (!check_operands(*proposal.op, types).ok() || !complete_attrs(*proposal.op, attrs).ok()) return false;
  const Result<Inferred> inferred = infer(*proposal.op, types, attrs);
  if (!inferred.ok()) return false;
  for (size_t call = 0; call < palette_.calls.size(); ++call) {
    SymbolSizes sizes = palette_.calls[call], most = palette_.most[call];
    for (const ResolvedSymbol &symbol : inferred->symbols)
      sizes[symbol.name] = most[symbol.name] = shape_of({symbol.bound}, most)[0];
    for (const Equality &equal : inferred->equalities)
      if (shape_of({equal.left}, sizes) != shape_of({equal.right}, sizes)) return false;
    for (const TensorType &type : inferred->results)
      if (!is_small(type, sizes, most)) return false;
    std::vector<const RefTensor *> operands;
    for (const Operand &operand : proposal.operands)
      operands.push_back(operand.kind == Operand::Kind::value ? &values_[operand.value].data[call]
                                                              : &operand.data[call]);
    Result<std::vector<RefTensor>> made = run_node(*proposal.op, attrs, operands, sizes);
    if (!made.ok()) return false;
    for (const RefTensor &result : *made)
      if (!tame(result) && !dice_.chance(0.2)) return false;
    results.push_back(std::move(made).value());
  }
  return true;
}

bool Drawing::is_small(const TensorType &type, const SymbolSizes &sizes, const SymbolSizes &most) const {
  int64_t count = 1, laid_out = 1;
  for (int64_t size : shape_of(type.dims, sizes)) {
    count *= size;
    if (size < 0 || count > palette_.max_elements) return false;
  }
  for (int64_t size : shape_of(type.dims, most)) {
    laid_out *= std::max<int64_t>(size, 0);
    if (laid_out > most_laid_out) return false;
  }
  return true;
}

// Where it is in doubt it is not: a float of a type that no operand has may have been rounded.
bool Drawing::is_exact(const Proposal &proposal, const Node &node) const {
  bool all_integers = proposal.op->lower != nullptr;
  for (const Operand &operand : proposal.operands) {
    if (operand.kind == Operand::Kind::value && !values_[operand.value].exact) return false;
    all_integers &= !dtype_info(operand.type.dtype).is_float;
  }
  for (const TensorType &type : node.results) {
    const bool is_float = dtype_info(type.dtype).is_float;
    all_integers &= !is_float;
    if (is_float && !proposal.operands.empty() &&
        std::ranges::none_of(proposal.operands, [&](const Operand &x) { return x.type.dtype == type.dtype; }))
      return false;
  }
  return nested_graphs(node).empty() && (all_integers || !rounds(*proposal.op));
}

Status Drawing::commit(const Proposal &proposal, const std::vector<std::vector<RefTensor>> &results) {
  std::vector<ValueId> operands;
  for (const Operand &operand : proposal.operands) {
    if (operand.kind == Operand::Kind::value) {
      operands.push_back(values_[operand.value].id);
    } else {
      KILN_ASSIGN(ValueId id, add_leaf(operand));
      operands.push_back(id);
    }
  }
  for (ValueId id : operands) ++std::ranges::find(values_, id, &Drawn::id)->uses;
  AttrMap annotations;
  if (dice_.chance(0.05)) annotations = {{"kiln.region", dice_.chance(0.5) ? "a" : "b"}};
  if (dice_.chance(0.05)) annotations.emplace("debug.note", dice_.below(3));
  AttrMap attrs = proposal.attrs;
  if (proposal.op->flags & op_flags::resolves && dice_.chance(0.3)) attrs.erase("symbol");
  KILN_ASSIGN(uint32_t node, edit_.add(proposal.op, operands, std::move(attrs), {}, std::move(annotations)));
  const bool exact = is_exact(proposal, *edit_.view().find(node));
  KILN_TRY(note_resolved(*edit_.view().find(node), results));
  for (uint32_t k = 0; k < results[0].size(); ++k) {
    Drawn value{{node, k}, edit_.view().type({node, k}), {}, exact};
    for (const std::vector<RefTensor> &call : results) value.data.push_back(call[k]);
    values_.push_back(std::move(value));
  }
  return {};
}

Status Drawing::note_resolved(const Node &node, const std::vector<std::vector<RefTensor>> &results) {
  for (const ResolvedSymbol &symbol : node.symbols) {
    for (size_t call = 0; call < results.size(); ++call) {
      palette_.calls[call][symbol.name] = results[call].back().i[0];
      palette_.most[call][symbol.name] = shape_of({symbol.bound}, palette_.most[call])[0];
    }
    palette_.resolved.insert(symbol.name);
    const Dim size = Expr::symbol(symbol.name);
    palette_.resolved_dims.insert(palette_.resolved_dims.end(), {size, size, size, 2 * size, size + 1});
    if (!palette_.nested && dice_.chance(0.2)) KILN_TRY(declare(symbol.name));
  }
  return {};
}

// Notes one for the end. An input that nothing else reads is made for it when there is none of the type.
Result<bool> Drawing::note_write_back(const Op &op) {
  if (palette_.nested) return false;
  // Only row-major inputs can be written.
  auto writable = [&](const Drawn &value) { return is_input(value) && value.type.strides.empty(); };
  std::vector<ValueId> sources, inputs;
  const bool change_places = dice_.chance(0.3);  // of two inputs
  for (const Drawn &value : values_)
    if (!change_places || writable(value)) sources.push_back(value.id);
  if (sources.empty()) return false;
  const ValueId source = dice_.pick(sources);
  const TensorType type = edit_.view().type(source);
  for (const Drawn &value : values_)
    if (writable(value) && value.id != source && value.type.same_value_type(type)) inputs.push_back(value.id);
  if (inputs.empty() || dice_.chance(0.3)) {
    std::optional<Operand> leaf = proposer_.leaf(type, Sample());
    if (!leaf) return false;
    leaf->kind = Operand::Kind::input;
    leaf->type.strides.clear();
    KILN_ASSIGN(ValueId id, add_leaf(*leaf));
    inputs = {id};
  }
  const ValueId dest = dice_.pick(inputs);
  write_backs_.push_back({&op, dest, source});
  if (change_places) write_backs_.push_back({&op, source, dest});
  return true;
}

}  // namespace kiln::testing
