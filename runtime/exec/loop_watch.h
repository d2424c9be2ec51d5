// Watches a run: lets the host end one that sits in a loop, and knows whether a step has ended it. The host is asked on
// its own threads alone: what a loop tells on another thread waits for one that waits for the run.
#pragma once
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "jit/base/status.h"

namespace kiln {

// Told which loop a run is in ("loop 'w'"), and how many turns that has made. True: the run is to end.
using AskHost = std::function<bool(std::string_view loop, int64_t turns)>;

// Asks about every 50 ms of a run's loops, however long their turns are. One run at a time.
class LoopWatch {
 public:
  explicit LoopWatch(AskHost ask) : ask_(std::move(ask)) {}

  const AskHost &ask() const { return ask_; }
  void begin_run(bool on_callers_thread = true) {
    looked_ = asked_ = {};
    unlooked_ = 1;
    stopped_ = false;
    is_here_ = on_callers_thread;
    if (on_callers_thread) return;
    const std::lock_guard lock(mutex_);
    told_.clear();
    ends_ = false;
  }
  // By a thread of the host's that waits for a run on another one: asks about what that has told since.
  void pass_on() noexcept {
    try {
      std::unique_lock lock(mutex_);
      const std::string loop = std::exchange(told_, std::string());
      const int64_t turns = told_turns_;
      lock.unlock();
      if (loop.empty() || !ask_ || !ask_(loop, turns)) return;
      lock.lock();
      ends_ = true;
    } catch (const std::exception &) {  // no memory: it is told the next time
    }
  }
  // What a step reports and nothing comes after, unlike what kernels report and the run goes on.
  Status stop(Status status) {
    stopped_ = true;
    return status;
  }
  bool stopped() const { return stopped_; }
  // After each turn of each loop. Code cancelled when the host says so.
  Status turned(std::string_view node, int64_t turns) { return --unlooked_ > 0 ? Status() : look(node, turns); }

 private:
  using Clock = std::chrono::steady_clock;
  Status look(std::string_view node, int64_t turns) {
    const Clock::time_point now = Clock::now();
    if (asked_ == Clock::time_point()) looked_ = asked_ = now;
    // Of short turns the clock is looked at after a few: it may take as long as one of them.
    unlooked_ = now - looked_ < std::chrono::milliseconds(1) ? 16 : 1;
    looked_ = now;
    if (now - asked_ < std::chrono::milliseconds(50)) return {};
    asked_ = now;
    if (!ask_) return {};
    const std::string loop = node.empty() ? "a pass's loop" : str_cat("loop '", node, "'");
    if (is_here_ ? !ask_(loop, turns) : !tell(loop, turns)) return {};
    return error(Code::cancelled, "the host cancelled the run in turn ", turns, " of ", loop);
  }

  // To who waits. True: the host has answered that the run is to end.
  bool tell(const std::string &loop, int64_t turns) {
    const std::lock_guard lock(mutex_);
    told_ = loop;
    told_turns_ = turns;
    return ends_;
  }

  const AskHost ask_;
  Clock::time_point looked_, asked_;  // when; at first a run has done neither
  bool stopped_ = false;
  int unlooked_ = 1;  // turns until the clock is looked at
  bool is_here_ = true;

  std::mutex mutex_;  // of what follows
  std::string told_;  // the loop; empty: nothing since it was passed on
  int64_t told_turns_ = 0;
  bool ends_ = false;
};

}  // namespace kiln
