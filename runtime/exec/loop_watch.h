// Watches a run: lets the host end one that sits in a loop or a long kernel, or after a step; times steps; knows
// whether a step has ended it. The host is asked on its own threads alone: what a loop tells on another thread waits
// for one that waits for the run.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "jit/base/status.h"
#include "runtime/exec/step_times.h"
#include "runtime/exec/tell_host.h"

namespace kiln {

// Tells about every 50 ms of a run's loops, however long their turns are. One run at a time.
class LoopWatch {
 public:
  explicit LoopWatch(TellHost tell) : tell_(std::move(tell)) {}

  const TellHost &tell() const { return tell_; }
  void begin_run(bool on_callers_thread = true) {
    looked_ = told_ = {};
    unlooked_ = 1;
    stopped_ = false;
    is_here_ = on_callers_thread;
    if (on_callers_thread) return;
    const std::lock_guard lock(mutex_);
    untold_.clear();
  }
  // Before a run is begun, here or on another thread: what ended the last one does not end it.
  void renew() { ends_.store(false, std::memory_order_relaxed); }
  // Of any thread: the run ends after the step, the turn or the part of a kernel that it is in.
  void cancel() { ends_.store(true, std::memory_order_relaxed); }
  bool is_cancelled() const { return ends_.load(std::memory_order_relaxed); }
  // By a thread of the host's that waits for a run on another one: tells the host what that has left for it since.
  void pass_on() noexcept {
    try {
      std::unique_lock lock(mutex_);
      const std::string text = std::exchange(untold_, std::string());
      lock.unlock();
      if (!text.empty() && tell_(Event::loop, text)) cancel();
    } catch (const std::exception &) {  // no memory: it is told the next time
    }
  }
  // What a step reports and nothing comes after, unlike what kernels report and the run goes on.
  Status stop(Status status) {
    stopped_ = true;
    return status;
  }
  bool stopped() const { return stopped_; }
  // Of the next runs: whether their steps are timed and told. `root`: the plan that they run.
  void time_steps(bool wanted, const Plan &root) {
    if (wanted || times_steps_) times_.clear(root);  // also what an earlier run left
    times_steps_ = wanted;
  }
  bool times_steps() const { return times_steps_; }
  const StepTimes &times() const { return times_; }
  // Code cancelled when the host says so.
  Status ended(const Plan &plan, size_t step, StepTimes::Clock::duration time, std::span<const int64_t> symbols) {
    times_.add(plan, step, time, symbols);
    if (!tell_) return {};
    const std::string text = times_.text_of_last();
    return tell_(Event::step, text) ? error(Code::cancelled, "the host cancelled the run after ", text) : Status();
  }
  // After each step of a run whose steps are not timed. Code cancelled when the host has said so.
  Status after(size_t step) const {
    return is_cancelled() ? error(Code::cancelled, "the host cancelled the run after step ", step) : Status();
  }
  // After each turn of each loop. Code cancelled when the host says so.
  Status turned(std::string_view node, int64_t turns) { return --unlooked_ > 0 ? Status() : look(node, turns); }
  static Status ended_in(std::string_view node, int64_t turn) {
    return error(Code::cancelled, "the host cancelled the run in turn ", turn, " of ", loop(node));
  }
  // Inside of a kernel that takes long, by the thread of the run, every few ms. Code cancelled when the host says so.
  Status inside(uint32_t kernel) {
    const Clock::time_point now = Clock::now();
    if (!is_due(now)) return {};
    std::string text = str_cat("kernel ", kernel);
    if (!ends(text)) return {};
    return error(Code::cancelled, "the host cancelled the run in ", text);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static std::string loop(std::string_view node) {
    return node.empty() ? "a pass's loop" : str_cat("loop '", node, "'");
  }
  Status look(std::string_view node, int64_t turns) {
    const Clock::time_point now = Clock::now();
    const bool due = is_due(now);
    // Of short turns the clock is looked at after a few: it may take as long as one of them.
    unlooked_ = now - looked_ < std::chrono::milliseconds(1) ? 16 : 1;
    looked_ = now;
    if (!due) return {};
    return ends(str_cat(loop(node), ", turn ", turns)) ? ended_in(node, turns) : Status();
  }

  // Whether the host is to be told now.
  bool is_due(Clock::time_point now) {
    if (told_ == Clock::time_point()) looked_ = told_ = now;
    if (is_cancelled()) return true;
    if (now - told_ < std::chrono::milliseconds(50)) return false;
    told_ = now;
    return static_cast<bool>(tell_);
  }
  // Tells where the run is; whether the host ends it there.
  bool ends(const std::string &text) { return is_cancelled() || (is_here_ ? tell_(Event::loop, text) : leave(text)); }

  // For who waits. True: the host has answered that the run is to end.
  bool leave(std::string text) {
    const std::lock_guard lock(mutex_);
    untold_ = std::move(text);
    return is_cancelled();
  }

  const TellHost tell_;
  Clock::time_point looked_, told_;  // when; at first a run has done neither
  bool stopped_ = false;
  int unlooked_ = 1;  // turns until the clock is looked at
  bool is_here_ = true;
  bool times_steps_ = false;
  StepTimes times_;

  std::mutex mutex_;    // of what follows
  std::string untold_;  // empty: nothing since it was passed on
  std::atomic<bool> ends_ = false;
};

// The steps of one body, as they end one after the other. What the host does with what it is told is not theirs.
class StepClock {
 public:
  // `symbols`: the plan's, which steps may resolve.
  StepClock(LoopWatch &watch, const Plan &plan, std::span<const int64_t> symbols)
      : watch_(watch), plan_(plan), symbols_(symbols), begun_(StepTimes::Clock::now()) {}
  Status ended(size_t step) {
    Status status = watch_.ended(plan_, step, StepTimes::Clock::now() - begun_, symbols_);
    begun_ = StepTimes::Clock::now();
    return status;
  }

 private:
  LoopWatch &watch_;
  const Plan &plan_;
  const std::span<const int64_t> symbols_;
  StepTimes::Clock::time_point begun_;
};

}  // namespace kiln
