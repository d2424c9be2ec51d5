// Long reductions of few results, for tasks to share: groups of whole chunks are reduced by themselves, and what they
// come to is combined as their chunks would be, so that it is the same bits (kernel.h, "The order of sums").
#include <algorithm>

#include "jit/kernel/body.h"
#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

// With more results there are tasks enough. Groups cost memory for what they come to, and a launch.
constexpr int64_t most_results = 1024;
constexpr int64_t task_points = 65536;  // of all results' groups together: some 10 us of a processor

// A node of the graph may have to be told of an error, which is found by what a launch writes (runtime/plan/risks.h).
bool may_fail(const Body &body) {
  return std::ranges::any_of(body.values, [](const Value &v) {
    const bool divides = v.op == Core::div || v.op == Core::rem;
    return v.op == Core::in_range || (divides && !dtype_info(v.type).is_float);
  });
}

// Whether each access to memory walks `axis` evenly.
bool is_even(const Body &body, uint32_t axis, std::span<const uint32_t> operands, std::span<const Tensor> tensors) {
  return std::ranges::all_of(body.values, [&](const Value &v) {
    Expr at = has_expr(v.op) ? v.expr : 0;
    if (reads_memory(v.op)) {
      const Shape &strides = tensors[operands[v.access.buffer]].strides;
      for (size_t d = 0; d < strides.size(); ++d) at += v.access.index[d] * strides[d];
    }
    return !at.depends_on_axis(axis) || at.coefficient(axis).has_value();
  });
}

class Split {
 public:
  Split(Item &whole, std::vector<Tensor> &tensors, const Target &target)
      : whole_(whole), c_(whole.compute), tensors_(tensors) {
    for (const Expr &extent : c_.reduce) points_ *= extent;
    for (const Expr &dim : c_.dims) results_ *= dim;
    group_ = target.on_device() ? device_chunk : sum_chunk;
    if (results_.is_integer() && results_.integer() > 0)
      while (group_ * results_.integer() < task_points) group_ *= 2;
  }

  bool pays() const {
    const bool reduces = !c_.is_map() && !c_.contract && !c_.scatter && c_.scan < 0 && c_.order == Compute::Order::none;
    if (!reduces || whole_.prepared || !rounds(c_.carriers.combine) || may_fail(c_.body)) return false;
    if (!results_.is_integer() || results_.integer() > most_results) return false;
    // Rows of sizes that are told at the call go with what else is done with rows: a norm, a softmax.
    if (!points_.is_integer()) return results_.is(1) && points_.upper_bound().value_or(INT64_MAX) > 2 * group_;
    return points_.integer() > std::max(2 * group_, 2 * task_points);
  }

  // The groups' item, or none, where the points are no one axis; then `whole` combines what it makes.
  std::optional<Item> run() {
    const auto rank = static_cast<uint32_t>(c_.dims.size());
    const Expr groups = max(1, ceil_div(points_, group_)), g = Expr::axis(0, groups),
               point = g * group_ + Expr::axis(rank + 1, group_);
    Item parts;
    Compute &p = parts.compute;
    p.dims = {groups};
    p.dims.insert(p.dims.end(), c_.dims.begin(), c_.dims.end());
    p.reduce = {group_};
    for (uint32_t d = 0; d <= rank; ++d)
      if (!p.dims[d].is(1)) parts.domain.push_back(d);
    const AxisMap axes = [&](uint32_t axis) -> std::optional<Expr> {
      if (axis < rank) return c_.dims[axis].is(1) ? Expr(0) : Expr::axis(axis + 1, c_.dims[axis]);
      Expr inner = 1;  // (point / inner) % extent
      for (size_t r = c_.reduce.size() - 1; r > axis - rank; --r) inner *= c_.reduce[r];
      return axis == rank ? floor_div(point, inner) : mod(floor_div(point, inner), c_.reduce[axis - rank]);
    };
    const std::vector<int> ids =
        copy_body(c_.body, p.body, axes, [](Body &to, const Value &load) { return append(to, load); });
    if (!is_even(p.body, rank + 1, whole_.operands, tensors_)) return std::nullopt;
    for (const int32_t yield : c_.body.yields) p.body.yields.push_back(ids[static_cast<size_t>(yield)]);
    p.carriers = c_.carriers;
    p.carriers.until = min(group_, points_ - g * group_);
    parts.operands = std::move(whole_.operands);
    p.results.clear();
    whole_.operands.clear();
    for (size_t c = 0; c < p.carriers.types.size(); ++c) {
      const DType type = p.carriers.types[c];
      p.results.push_back({type, static_cast<int32_t>(c)});
      parts.results.push_back(static_cast<uint32_t>(tensors_.size()));
      tensors_.push_back({.dtype = type,
                          .dims = p.dims,
                          .strides = row_major_strides(p.dims),
                          .is_output = false,
                          .prepared = false,
                          .part_of = whole_.results[0]});
    }
    combine(parts, groups);
    return parts;
  }

 private:
  void combine(const Item &parts, const Expr &groups) {
    const auto rank = static_cast<uint32_t>(c_.dims.size());
    std::vector<Expr> index = {groups.is(1) ? Expr(0) : Expr::axis(rank, groups)};
    for (uint32_t d = 0; d < rank; ++d) index.push_back(c_.dims[d].is(1) ? Expr(0) : Expr::axis(d, c_.dims[d]));
    c_.body = {};
    BodyBuilder body(c_.body);
    for (size_t c = 0; c < parts.results.size(); ++c) {
      whole_.operands.push_back(parts.results[c]);
      body.yield(body.load(static_cast<uint16_t>(c), c_.carriers.types[c], index));
    }
    c_.reduce = {groups};
    c_.carriers.in_pairs = true;
  }

  Item &whole_;
  Compute &c_;
  std::vector<Tensor> &tensors_;
  Expr points_ = 1, results_ = 1;
  int64_t group_;
};

}  // namespace

std::vector<Item> split_sums(std::vector<Item> items, std::vector<Tensor> &tensors, const Target &target,
                             const FuseOptions &options) {
  if (!options.fuse) return items;
  std::vector<Item> all;
  for (Item &item : items) {
    if (Split split(item, tensors, target); split.pays())
      if (std::optional<Item> parts = split.run()) all.push_back(std::move(*parts));
    all.push_back(std::move(item));
  }
  return all;
}

}  // namespace kiln::kernel
