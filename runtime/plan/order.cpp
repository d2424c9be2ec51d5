#include "runtime/plan/order.h"

#include <algorithm>
#include <map>

namespace kiln {
namespace {

class Order {
 public:
  Order(std::span<const StepUse> steps, std::span<const Overwrite> overwrites) : steps_(steps), waiting_(steps.size()) {
    for (const Overwrite &o : overwrites) {
      tensors_of_.emplace(o.step, o.tensor);
      overwriters_.emplace(o.tensor, o.step);
    }
    for (const StepUse &step : steps)
      for (uint32_t tensor : step.reads)
        if (overwriters_.contains(tensor)) ++readers_[tensor];
  }

  std::vector<uint32_t> run() {
    for (uint32_t step = 0; step < steps_.size(); ++step) {
      for (uint32_t tensor : steps_[step].reads)
        if (const auto held = held_maker_.find(tensor); held != held_maker_.end()) place(held->second);
      waiting_[step] = true;
      if (may_run(step)) {
        place(step);
        continue;
      }
      for (uint32_t tensor : steps_[step].writes) held_maker_[tensor] = step;
    }
    for (uint32_t step = 0; step < steps_.size(); ++step) place(step);
    return std::move(order_);
  }

 private:
  // Whether all others have read what it overwrites.
  bool may_run(uint32_t step) const {
    const auto [first, last] = tensors_of_.equal_range(step);
    for (auto at = first; at != last; ++at) {
      const auto readers = readers_.find(at->second);
      if (readers == readers_.end()) continue;
      uint32_t own = 0;
      for (uint32_t tensor : steps_[step].reads) own += tensor == at->second;
      if (readers->second > own) return false;
    }
    return true;
  }

  // With those that it was the last to keep waiting.
  void place(uint32_t first) {
    std::vector<uint32_t> ready{first};
    while (!ready.empty()) {
      const uint32_t step = ready.back();
      ready.pop_back();
      if (!waiting_[step]) continue;
      waiting_[step] = false;
      order_.push_back(step);
      for (uint32_t tensor : steps_[step].writes) held_maker_.erase(tensor);
      for (uint32_t tensor : steps_[step].reads) {
        const auto readers = readers_.find(tensor);
        if (readers == readers_.end() || --readers->second > 1) continue;
        const auto [begin, end] = overwriters_.equal_range(tensor);
        for (auto at = begin; at != end; ++at)
          if (waiting_[at->second] && may_run(at->second)) ready.push_back(at->second);
      }
    }
  }

  const std::span<const StepUse> steps_;
  std::multimap<uint32_t, uint32_t> tensors_of_, overwriters_;  // by step; by tensor
  std::map<uint32_t, uint32_t> readers_;                        // that are not placed yet, of what is overwritten
  std::map<uint32_t, uint32_t> held_maker_;                     // by tensor, of steps that are put off
  std::vector<bool> waiting_;
  std::vector<uint32_t> order_;
};

}  // namespace

std::vector<uint32_t> put_off(std::span<const StepUse> steps, std::span<const Overwrite> overwrites) {
  return Order(steps, overwrites).run();
}

void sort_unique(std::vector<uint32_t> &numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
}

}  // namespace kiln
