// Attributes of views, gather and concat: what they may be depends on the operand.
#include <algorithm>

#include "tests/backend/harness.h"
#include "tests/backend/random/propose.h"

namespace kiln::testing {
namespace {

AttrValue dims_value(Shape dims) { return AttrValue(std::move(dims)); }
constexpr DTypes all_dtypes = ~DTypes{0};

}  // namespace

std::optional<Proposal> Proposer::for_view(const Op &op) {
  if (op.name == "gather") return gather(op);
  if (op.name == "concat") return concat(op);
  if (op.name == "call" || op.name == "cond") return call(op);
  if (op.name == "resolve") return resolve(op);
  if (op.name == "nonzero") return nonzero(op);
  using Attrs = AttrMap (Proposer::*)(const TensorType &);
  static const std::map<std::string_view, Attrs> views = {
      {"reshape", &Proposer::reshape}, {"expand", &Proposer::expand},   {"slice", &Proposer::slice},
      {"permute", &Proposer::permute}, {"squeeze", &Proposer::squeeze}, {"pad", &Proposer::pad}};
  const auto view = views.find(op.name);
  if (view == views.end()) return std::nullopt;
  const std::optional<size_t> x = value_of(all_dtypes);
  if (!x) return std::nullopt;
  return Proposal{&op, {existing(*x)}, (this->*view->second)(values_[*x].type)};
}

// The shape of another value with as many elements; dims merged; a dim split; ones put in; -1 for one of them.
AttrMap Proposer::reshape(const TensorType &x) {
  Shape shape = x.dims;
  const Dim count = product_of(shape);
  const auto same_count = find_value([&](const TensorType &t) { return product_of(t.dims) == count; });
  if (same_count && dice_.chance(0.4)) shape = values_[*same_count].type.dims;
  for (int64_t steps = dice_.below(3); steps >= 0; --steps) {
    const size_t at = shape.empty() ? 0 : static_cast<size_t>(dice_.below(static_cast<int64_t>(shape.size())));
    const auto place = shape.begin() + static_cast<ptrdiff_t>(at);
    switch (dice_.below(4)) {
      case 0:  // merge
        if (at + 1 >= shape.size()) break;
        shape[at] *= shape[at + 1];
        shape.erase(place + 1);
        break;
      case 1: {  // split
        if (shape.empty()) break;
        const Dim part = dice_.pick(std::vector<Dim>{2, 3, 4, 5});
        const Dim rest = floor_div(shape[at], part);
        if (!(rest * part == shape[at])) break;
        shape[at] = rest;
        shape.insert(place + dice_.below(2), part);
        break;
      }
      case 2:
        shape.insert(place, Dim(1));
        break;
      case 3:
        if (!shape.empty() && shape[at].is(1)) shape.erase(place);
        break;
    }
  }
  if (!shape.empty() && dice_.chance(0.2)) dice_.pick(shape) = -1;
  return {{"shape", dims_value(std::move(shape))}};
}

AttrMap Proposer::expand(const TensorType &x) {
  Shape shape = dice_.chance(0.3) ? random_shape(2) : Shape();
  for (const Dim &dim : x.dims) shape.push_back(dim.is(1) && dice_.chance(0.8) ? random_size() : dim);
  return {{"shape", dims_value(std::move(shape))}};
}

AttrMap Proposer::slice(const TensorType &x) {
  const int64_t rank = static_cast<int64_t>(x.rank());
  const int64_t dim = dice_.below(std::max<int64_t>(rank, 1));
  const Dim size = rank ? x.dims[static_cast<size_t>(dim)] : Dim(1);
  Dim start = dice_.pick(std::vector<Dim>{0, 0, 1, 2, -1, -2, floor_div(size, 3), min(size, 1)});
  Dim end = dice_.pick(std::vector<Dim>{size, size, size - 1, 1, 2, -1, ceil_div(size, 2), min(size, 3)});
  if (dice_.chance(0.3)) (dice_.chance(0.3) ? start : end) = random_size();
  const bool down = dice_.chance(0.2);
  if (down) std::swap(start, end);
  if (down && dice_.chance(0.6)) start = -1, end = -1 - size;
  return {{"dim", dice_.chance(0.3) ? dim - rank : dim},
          {"start", start},
          {"end", end},
          {"step", (down ? -1 : 1) * (dice_.chance(0.6) ? int64_t{1} : dice_.between(2, 3))}};
}

AttrMap Proposer::permute(const TensorType &x) {
  std::vector<int64_t> dims = random_order(x.rank());
  for (int64_t &dim : dims)
    if (dice_.chance(0.2)) dim -= static_cast<int64_t>(x.rank());
  return {{"dims", AttrValue(std::move(dims))}};
}

AttrMap Proposer::squeeze(const TensorType &x) {
  std::vector<int64_t> dims;
  for (size_t d = 0; d < x.rank(); ++d)
    if ((x.dims[d].is(1) && dice_.chance(0.7)) || dice_.chance(0.02)) dims.push_back(static_cast<int64_t>(d));
  return {{"dims", AttrValue(std::move(dims))}};
}

AttrMap Proposer::pad(const TensorType &x) {
  std::vector<int64_t> low, high;
  for (size_t d = 0; d < x.rank(); ++d) {
    low.push_back(dice_.chance(0.4) ? dice_.below(3) : 0);
    high.push_back(dice_.chance(0.4) ? dice_.below(3) : 0);
  }
  return {{"low", AttrValue(std::move(low))},
          {"high", AttrValue(std::move(high))},
          {"value", dice_.pick(std::vector<double>{0, 1, -2})}};
}

// Indices in range at every call.
std::optional<Proposal> Proposer::gather(const Op &op) {
  const auto x = find_value([](const TensorType &t) { return t.rank() > 0; });
  if (!x) return std::nullopt;
  const TensorType &type = values_[*x].type;
  const size_t dim = static_cast<size_t>(dice_.below(static_cast<int64_t>(type.rank())));
  Sample ranges;
  ranges.int_low = 0;
  ranges.int_high = INT64_MAX;
  for (const RefTensor &data : values_[*x].data) ranges.int_high = std::min(ranges.int_high, data.shape[dim]);
  if (ranges.int_high < 1) return std::nullopt;
  Shape dims = type.dims;
  if (dice_.chance(0.5)) dims[dim] = random_size();
  std::optional<Operand> index = leaf(make_type(DType::i64, dims), ranges);
  if (!index) {  // its size is one that a run tells
    const auto value = find_value([&](const TensorType &t) { return t.dtype == DType::i64 && t.dims == dims; });
    if (!value) return std::nullopt;
    index = existing(*value);
  }
  return Proposal{&op, {existing(*x), std::move(*index)}, {{"dim", static_cast<int64_t>(dim)}}};
}

std::optional<Proposal> Proposer::concat(const Op &op) {
  const auto first = find_value([](const TensorType &t) { return t.rank() > 0; });
  if (!first) return std::nullopt;
  const TensorType &type = values_[*first].type;
  const size_t dim = static_cast<size_t>(dice_.below(static_cast<int64_t>(type.rank())));
  Proposal made{&op, {existing(*first)}, {{"dim", static_cast<int64_t>(dim)}}};
  for (int64_t more = dice_.below(4); more > 0; --more) {
    auto fits = [&](const TensorType &t) {
      if (t.dtype != type.dtype || t.rank() != type.rank()) return false;
      for (size_t d = 0; d < t.rank(); ++d)
        if (d != dim && t.dims[d] != type.dims[d]) return false;
      return true;
    };
    if (auto other = find_value(fits)) made.operands.push_back(existing(*other));
  }
  std::swap(made.operands.front(), dice_.pick(made.operands));
  return made;
}

}  // namespace kiln::testing
