#include "runtime/exec/entries.h"

#include <algorithm>
#include <numeric>

#include "runtime/exec/executable.h"

namespace kiln {
namespace {

bool is_met(std::span<const Entries::Guard> guards, std::span<const ArrayRef> inputs) {
  return std::ranges::all_of(guards, [&](const Entries::Guard &guard) {
    const ArrayRef &array = inputs[guard.input];
    return array.rank > guard.dim && array.shape && array.shape[guard.dim] == guard.size;
  });
}

bool same_arguments(std::span<const Plan::Argument> general, std::span<const Plan::Argument> own,
                    const FixedSizes &sizes) {
  return std::ranges::equal(general, own, [&](const Plan::Argument &a, const Plan::Argument &b) {
    return a.name == b.name && a.dtype == b.dtype && at_sizes(a.dims, sizes) == b.dims &&
           at_sizes(a.strides, sizes) == b.strides;
  });
}

bool same_presented(std::span<const Plan::Presented> general, std::span<const Plan::Presented> own,
                    const FixedSizes &sizes) {
  return std::ranges::equal(general, own, [&](Plan::Presented a, const Plan::Presented &b) {
    a.strides = at_sizes(a.strides, sizes);
    a.offset = at_sizes(a.offset, sizes);
    return a == b;
  });
}

}  // namespace

void Entries::begin(const std::vector<FixedSizes> &sizes, const Plan &general, Ask ask) {
  for (const FixedSizes &fixed : sizes) {
    Entry &entry = entries_.emplace_back();
    entry.sizes_ = fixed;
    entry.name_ = text_of(fixed);
    for (const Plan::Symbol &symbol : general.symbols)
      if (const auto size = fixed.find(symbol.name); size != fixed.end())
        entry.guards_.push_back({symbol.input, symbol.dim, size->second});
  }
  order_.resize(entries_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::ranges::stable_sort(order_, std::greater(), [&](size_t i) { return entries_[i].guards_.size(); });
  ask_ = std::move(ask);
}

size_t Entries::pick(std::span<const ArrayRef> inputs) {
  for (const size_t number : order_) {
    const Entry &entry = entries_[number];
    if (!is_met(entry.guards_, inputs)) continue;
    const State state = entry.state();
    if (state == State::made) return number;
    if (state == State::unmade && ask_) ask_for(number);
  }
  return none;
}

void Entries::ask_for(size_t number) {
  State unmade = State::unmade;
  if (!entries_[number].state_.compare_exchange_strong(unmade, State::asked)) return;
  // Given up, the entry is to be had again: a forked child drops the tasks that are the parent's to do.
  const std::shared_ptr<void> turn(nullptr, [self = shared_from_this(), number](void *) {
    State asked = State::asked;
    self->entries_[number].state_.compare_exchange_strong(asked, State::unmade);
  });
  ask_(number, turn);
}

Status Entries::put(size_t number, std::shared_ptr<const Executable> executable, const Plan &general) {
  Entry &entry = entries_[number];
  const Plan &own = executable->plan();
  if (!same_arguments(general.inputs, own.inputs, entry.sizes_) ||
      !same_arguments(general.parameters, own.parameters, entry.sizes_) ||
      !same_arguments(general.outputs, own.outputs, entry.sizes_) ||
      !same_presented(general.presented, own.presented, entry.sizes_) || general.written_inputs != own.written_inputs ||
      general.donated_inputs != own.donated_inputs)
    return error(Code::corrupt, "entry '", entry.name_, "' has another signature than the program for all sizes");
  const std::lock_guard lock(mutex_);
  if (entry.state() == State::made) return {};
  entry.executable_ = std::move(executable);
  entry.state_.store(State::made, std::memory_order_release);
  made_.fetch_add(1, std::memory_order_release);
  return {};
}

}  // namespace kiln
