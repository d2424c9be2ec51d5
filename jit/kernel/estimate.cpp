#include "jit/kernel/estimate.h"

#include <span>
#include <vector>

namespace kiln::kernel {
namespace {

constexpr int sort_cost = 16;  // of an element that is sorted: comparisons, and moves

Expr points_of(std::span<const Axis> axes) {
  Expr points = 1;
  for (const Axis &axis : axes) points *= axis.extent;
  return points;
}

// Of one evaluation, but for what reads and what tells where.
int flops_of(const Body &body) {
  int cost = 0;
  for (const Value &value : body.values)
    if (core_info(value.op).group != CoreGroup::leaf) cost += core_info(value.op).cost;
  return cost;
}

class Estimator {
 public:
  explicit Estimator(const Kernel &kernel) : kernel_(kernel), touched_(kernel.buffers.size()) {}

  Estimate run() {
    for (const Stage &stage : kernel_.stages) add(stage);
    for (size_t b = 0; b < touched_.size(); ++b) {
      const Buffer &buffer = kernel_.buffers[b];
      if (buffer.space != Buffer::Space::row_local)
        result_.bytes += min(buffer.size, touched_[b]) * Expr(static_cast<int64_t>(size_of(buffer.type)));
    }
    return result_;
  }

 private:
  void add(const Stage &stage) {
    axes_ = kernel_.parallel;
    axes_.insert(axes_.end(), stage.axes.begin(), stage.axes.end());
    const Expr points = points_of(axes_);
    Expr ends = points;  // where stores, and of a contraction the body, are: behind what is summed up
    if (stage.contract || !stage.carriers.types.empty()) {
      std::vector<Axis> kept;
      for (const Axis &axis : axes_)
        if (axis.role != Axis::Role::reduce) kept.push_back(axis);
      ends = points_of(kept);
    }
    result_.flops += Expr(flops_of(stage.body)) * (stage.contract ? ends : points);
    result_.flops += Expr(flops_of(stage.carriers.combine)) * points;
    if (stage.sort) result_.flops += Expr(sort_cost) * points;
    if (stage.contract) {
      result_.flops += Expr(2) * points;
      touch(stage.contract->a, points);
      touch(stage.contract->b, points);
    }
    touch(stage.body, points);
    for (const Store &store : stage.stores) touch(store.to, ends);
  }

  void touch(const Body &body, const Expr &points) {
    for (const Value &value : body.values)
      if (reads_memory(value.op)) touch(value.access, points);
  }
  // As many elements as there are points of the axes that the index speaks of; what it takes from memory may be any.
  void touch(const Access &access, const Expr &points) {
    Expr elements = 1;
    for (uint32_t id = 0; id < axes_.size(); ++id)
      if (access.index[0].depends_on_axis(id)) elements *= axes_[id].extent;
    touched_[access.buffer] += access.index[0].depends_on_value() ? points : elements;
  }

  const Kernel &kernel_;
  std::vector<Axis> axes_;     // of the stage at hand, by id
  std::vector<Expr> touched_;  // elements, by buffer; more than there are where several accesses meet
  Estimate result_;
};

}  // namespace

Estimate estimate(const Kernel &kernel) { return Estimator(kernel).run(); }

}  // namespace kiln::kernel
