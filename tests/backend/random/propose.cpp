#include "tests/backend/random/propose.h"

#include <algorithm>
#include <numeric>

#include "tests/backend/harness.h"

namespace kiln::testing {
namespace {

const ArgDef &arg_of(const Op &op, size_t operand) { return op.args[std::min(operand, op.args.size() - 1)]; }

}  // namespace

const std::vector<Sample> &known_samples(const Op &op) {
  static std::map<const Op *, std::vector<Sample>> all;
  auto [at, is_new] = all.try_emplace(&op);
  if (is_new) op.samples(at->second);
  return at->second;
}

std::vector<int64_t> shape_of(const Shape &dims, const SymbolSizes &sizes) { return shape_at(dims, sizes); }

bool Palette::resolves(const TensorType &type) const {
  if (resolved.empty()) return false;
  std::set<std::string> used;
  for (const Dim &dim : type.dims) dim.collect_symbols(used);
  return std::ranges::any_of(used, [&](const std::string &symbol) { return resolved.contains(symbol); });
}

std::optional<size_t> Proposer::value_of(DTypes allowed, bool exact) {
  return find_value([&](const TensorType &type) { return (dtypes(type.dtype) & allowed) != 0; }, exact);
}

Dim Proposer::random_size() {
  return dice_.pick(!palette_.resolved.empty() && dice_.chance(0.5) ? palette_.resolved_dims : palette_.dims);
}

Shape Proposer::random_shape(int64_t max_rank) {
  Shape shape(static_cast<size_t>(dice_.between(0, max_rank)));
  for (Dim &dim : shape) dim = random_size();
  return shape;
}

// Dims in another order in memory, at times with gaps, or from the last to the first.
Shape Proposer::random_strides(const Shape &dims) {
  Shape strides(dims.size());
  Dim step = dice_.chance(0.3) ? 2 : 1;
  for (int64_t at : random_order(dims.size())) {
    strides[static_cast<size_t>(at)] = dice_.chance(0.2) ? 0 - step : step;
    step *= dims[static_cast<size_t>(at)];
  }
  return strides;
}

std::vector<int64_t> Proposer::random_order(size_t count) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t k = count; k > 1; --k) std::swap(order[k - 1], order[static_cast<size_t>(dice_.below(int64_t(k)))]);
  return order;
}

std::optional<Operand> Proposer::leaf(const TensorType &type, const Sample &ranges) {
  if (palette_.resolves(type)) return std::nullopt;
  bool has_symbols = false;
  for (const SymbolSizes &sizes : palette_.calls) {
    int64_t count = 1;
    for (int64_t size : shape_of(type.dims, sizes)) {
      count *= size;
      if (size < 0 || count > palette_.max_elements) return std::nullopt;
    }
  }
  for (const Dim &dim : type.dims) has_symbols |= !dim.is_integer();
  Operand made{Operand::Kind::input, 0, make_type(type.dtype, type.dims), {}};
  const double kind = dice_.unit();
  const Dim count = product_of(type.dims);
  if (kind < 0.2 && !has_symbols && count.integer() <= 64)
    made.kind = Operand::Kind::constant;
  else if (kind < 0.5 && !palette_.nested && (!has_symbols || kind < 0.25))
    made.kind = Operand::Kind::parameter;
  if (made.kind != Operand::Kind::constant && !palette_.nested && type.rank() >= 2 && dice_.chance(0.12))
    made.type.strides = random_strides(type.dims);
  const bool once = made.kind == Operand::Kind::constant || (made.kind == Operand::Kind::parameter && !has_symbols);
  const bool whole_numbers = dice_.chance(0.25);  // ties, zeros, exact sums
  Sample within = ranges;
  if (within.int_low < 0 && within.int_high > 1 && dice_.chance(0.4)) within.int_low = 1;  // can be divided by
  for (const SymbolSizes &sizes : palette_.calls) {
    if (once && !made.data.empty()) {
      made.data.push_back(made.data.front());
      continue;
    }
    RefTensor data = to_reference(random_tensor(type.dtype, shape_of(type.dims, sizes), within, dice_.generator()));
    if (whole_numbers)
      for (double &x : data.f) x = std::clamp(std::round(x), ranges.low, ranges.high);
    made.data.push_back(to_reference(from_reference(data)));
  }
  return made;
}

std::optional<Operand> Proposer::operand_of(const TensorType &type, const Sample &ranges, bool exact) {
  if (dice_.chance(0.6) || palette_.resolves(type))
    if (auto value = find_value([&](const TensorType &other) { return other.same_value_type(type); }, exact))
      return existing(*value);
  return leaf(type, ranges);
}

// ---- from the record

std::optional<Proposal> Proposer::propose(const Op &op) {
  std::optional<Proposal> made;
  if (dice_.chance(0.7)) made = for_view(op);
  if (!made) made = from_record(op);
  return made && op.flags & op_flags::resolves ? with_fresh_symbol(std::move(*made)) : std::move(made);
}

std::optional<Proposal> Proposer::from_record(const Op &op) {
  if (known_samples(op).empty()) return std::nullopt;
  const Sample sample = sample_of(op);
  const double how = dice_.unit();
  if (how < 0.6) return from_values(op, sample);
  return from_pattern(op, sample, how < 0.9);
}

Sample Proposer::sample_of(const Op &op) {
  const Sample &sample = dice_.pick(known_samples(op));
  for (const DType type : {palette_.type(dice_), palette_.types[0]}) {
    if (type == DType::f32) break;
    if (std::optional<Sample> other = is_of(sample, DType::f32) ? retyped(op, sample, type) : std::nullopt)
      return std::move(*other);
  }
  return sample;
}

// Values of the graph as they come, where their dtypes fit; for the last one some are tried until shapes fit, too.
std::optional<Proposal> Proposer::from_values(const Op &op, const Sample &sample) {
  Proposal made{&op, {}, sample.attrs};
  DType common = DType::none;
  for (size_t k = 0; k < sample.inputs.size(); ++k) {
    const ArgDef &arg = arg_of(op, k);
    const bool follows = arg.same_dtype && common != DType::none;
    std::optional<size_t> value;
    for (int tries = 0; tries < 8; ++tries) {
      value = value_of(follows ? dtypes(common) : arg.dtypes);
      if (!value) return std::nullopt;
      if (k == 0 || k + 1 < sample.inputs.size() || shapes_fit(made, *value)) break;
    }
    made.operands.push_back(existing(*value));
    if (arg.same_dtype && !follows) common = values_[*value].type.dtype;
  }
  for (auto &[name, value] : made.attrs)
    if (auto *dims = std::get_if<std::vector<Dim>>(&value.items))
      for (Dim &dim : *dims) dim = dim.substitute([&](const Expr &) -> std::optional<Expr> { return random_size(); });
  vary(op, made.operands.empty() ? 2 : made.operands[0].type.rank(), made.attrs);
  return made;
}

bool Proposer::shapes_fit(const Proposal &proposal, size_t last) const {
  std::vector<TensorType> types;
  for (const Operand &operand : proposal.operands) types.push_back(operand.type);
  types.push_back(values_[last].type);
  AttrMap attrs = proposal.attrs;
  return complete_attrs(*proposal.op, attrs).ok() && infer(*proposal.op, types, attrs).ok();
}

// The sample's shapes say which dims belong together: one operand is a value of the graph (if `adapt`), and where its
// dims stand in the sample's other operands and attributes they take the new sizes.
std::optional<Proposal> Proposer::from_pattern(const Op &op, const Sample &sample, bool adapt) {
  std::map<Dim, Dim> now;  // of the sample's dims
  std::optional<size_t> given;
  size_t at = 0;
  if (adapt && !sample.inputs.empty()) {
    at = static_cast<size_t>(dice_.below(static_cast<int64_t>(sample.inputs.size())));
    const TensorType &wanted = sample.inputs[at];
    given = find_value([&](const TensorType &t) { return t.dtype == wanted.dtype && t.rank() == wanted.rank(); });
    if (!given) return std::nullopt;
    for (size_t d = 0; d < wanted.rank(); ++d)
      if (!wanted.dims[d].is(1)) now.emplace(wanted.dims[d], values_[*given].type.dims[d]);
  }
  auto translate = [&](const Dim &dim) -> Dim {
    if (auto found = now.find(dim); found != now.end()) return found->second;
    if (dim.is(0) || dim.is(1) || dim.is(-1)) return dim;
    if (dim.is_integer()) {
      const bool keep = !adapt || dice_.chance(0.4);
      return now[dim] = keep && dim.integer() <= 40 ? dim : dice_.pick(palette_.dims);
    }
    return dim.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() != Expr::Kind::symbol) return std::nullopt;
      auto [found, is_new] = now.try_emplace(leaf);
      if (is_new) found->second = dice_.pick(palette_.dims);
      return found->second;
    });
  };

  Proposal made{&op, {}, sample.attrs};
  Sample ranges = sample;
  for (size_t k = 0; k < sample.inputs.size(); ++k) {
    if (given && k == at) {
      made.operands.push_back(existing(*given));
      continue;
    }
    Shape dims;
    for (const Dim &dim : sample.inputs[k].dims) dims.push_back(translate(dim));
    // An index's range is a dim of another operand.
    if (auto extent = now.find(Dim(sample.int_high)); sample.int_low == 0 && extent != now.end()) {
      ranges.int_high = INT64_MAX;
      for (const SymbolSizes &sizes : palette_.calls)
        ranges.int_high = std::min(ranges.int_high, shape_of({extent->second}, sizes)[0]);
      if (ranges.int_high < 1) return std::nullopt;
    }
    std::optional<Operand> operand = operand_of(make_type(sample.inputs[k].dtype, dims), ranges);
    if (!operand) return std::nullopt;
    // Edge values come with the sample's own shapes.
    if (auto edges = sample.given.find(k); edges != sample.given.end() && operand->kind != Operand::Kind::value)
      for (RefTensor &data : operand->data)
        if (data.shape == edges->second.shape) data = to_reference(edges->second);
    made.operands.push_back(std::move(*operand));
  }
  for (auto &[name, value] : made.attrs)
    if (auto *dims = std::get_if<std::vector<Dim>>(&value.items))
      for (Dim &dim : *dims) dim = translate(dim);
  if (adapt && dice_.chance(0.4)) vary(op, made.operands.empty() ? 2 : made.operands[0].type.rank(), made.attrs);
  return made;
}

void Proposer::vary(const Op &op, size_t rank, AttrMap &attrs) {
  for (const AttrDef &attr : op.attrs) {
    auto at = attrs.find(attr.name);
    if (at == attrs.end() && attr.required) continue;
    if (attr.kind == AttrKind::graph || attr.kind == AttrKind::tensor || !dice_.chance(0.4)) continue;
    const AttrValue now = at == attrs.end() ? default_of(attr) : at->second;
    attrs.insert_or_assign(std::string(attr.name), varied(op, attr, now, static_cast<int64_t>(rank)));
  }
}

AttrValue Proposer::varied(const Op &op, const AttrDef &attr, const AttrValue &now, int64_t rank) {
  auto axis = [&] { return dice_.between(-rank - 1, rank); };
  switch (attr.kind) {
    case AttrKind::i64: {
      if (!attr.is_list) return axis();
      const bool sizes = dice_.chance(0.5);
      std::vector<int64_t> list(sizes ? now.size() : static_cast<size_t>(dice_.below(3)));
      for (int64_t &x : list) x = sizes ? dice_.below(4) : axis();
      return list;
    }
    case AttrKind::f64:
      return dice_.pick(std::vector<double>{0, 1, -1.5, 0.5, 3});
    case AttrKind::dtype:
      return palette_.type(dice_);
    case AttrKind::dim:
      return attr.is_list ? AttrValue(random_shape(3)) : AttrValue(random_size());
    case AttrKind::boolean:
      return !now.boolean();
    case AttrKind::text: {  // only the op knows what it may be: another sample's
      const Sample &other = dice_.pick(known_samples(op));
      auto found = other.attrs.find(attr.name);
      return found == other.attrs.end() ? now : found->second;
    }
    default:
      return now;
  }
}

}  // namespace kiln::testing
