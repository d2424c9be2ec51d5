// Entries of an executable: programs for some sizes, beside the one for all. Which there may be is known from the
// beginning; each is made then or later, while calls run. Calls see what has been made without a lock.
// Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/status.h"
#include "runtime/passes/specialize.h"
#include "runtime/plan/plan.h"

namespace kiln {

class Executable;
struct ArrayRef;

class Entries : public std::enable_shared_from_this<Entries> {
 public:
  struct Guard {
    uint32_t input, dim;  // whose size it is
    int64_t size;
  };
  enum class State : uint8_t { unmade, asked, made, failed };
  class Entry {
   public:
    const std::string &name() const { return name_; }  // "batch=1,length=128"
    const FixedSizes &sizes() const { return sizes_; }
    State state() const { return state_.load(std::memory_order_acquire); }
    const std::shared_ptr<const Executable> &executable() const { return executable_; }  // once it is made

   private:
    friend class Entries;
    FixedSizes sizes_;
    std::string name_;
    std::vector<Guard> guards_;
    std::atomic<State> state_ = State::unmade;
    std::shared_ptr<const Executable> executable_;
  };
  // Has an entry made, and returns at once. Whoever makes it holds `turn` meanwhile: given up with the entry still
  // unmade, it may be asked for again.
  using Ask = std::function<void(size_t entry, std::shared_ptr<void> turn)>;

  // Once, before anybody else sees the executable, whose plan is `general`: its symbols, in each of `sizes`, are bound
  // by inputs. `ask`: what a run does that meets sizes whose entry is not made; empty: nothing.
  void begin(const std::vector<FixedSizes> &sizes, const Plan &general, Ask ask = {});

  size_t count() const { return entries_.size(); }
  const Entry &operator[](size_t number) const { return entries_[number]; }
  static constexpr size_t none = SIZE_MAX;
  // Of those that are made, the one for most of the inputs' sizes; none: the general program is to run.
  size_t pick(std::span<const ArrayRef> inputs);
  uint32_t made_count() const { return made_.load(std::memory_order_acquire); }
  void ask_for(size_t number);  // unless somebody has; `ask` is not empty

  // corrupt: it has another signature than the general program has at these sizes.
  Status put(size_t number, std::shared_ptr<const Executable> executable, const Plan &general);
  void fail(size_t number) { entries_[number].state_.store(State::failed, std::memory_order_release); }

 private:
  std::deque<Entry> entries_;  // a deque does not move them
  std::vector<size_t> order_;  // those with more guards first
  std::atomic<uint32_t> made_{0};
  std::mutex mutex_;  // of putting
  Ask ask_;
};

}  // namespace kiln
