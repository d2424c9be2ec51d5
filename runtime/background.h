// Work that a caller does not wait for: saves to the cache. One thread, started by the first task, in order of arrival.
// Threads: submit and close from any thread; tasks run on the background thread, with no lock that others need.
// Forks: fork() waits for the task that is running. What waits behind it is the parent's to do; the child starts a
// thread of its own.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "jit/base/process.h"
#include "jit/base/status.h"

namespace kiln {

class Background {
 public:
  Background() = default;
  Background(const Background &) = delete;
  Background &operator=(const Background &) = delete;
  ~Background() { close(); }

  // Runs the task here when no thread can be started, or after close.
  void submit(std::function<Status()> task);
  // Waits for all tasks. Idempotent.
  void close();

  uint64_t failures() const;
  std::string first_failure() const;  // its message; empty: none

 private:
  void work();
  void run(const std::function<Status()> &task);

  std::mutex running_;  // held while a task runs on the thread; taken before mutex_
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<Status()>> tasks_;
  Thread thread_;
  bool closed_ = false;
  uint64_t failures_ = 0;
  std::shared_ptr<const ErrorInfo> first_failure_;  // null: there was no memory to tell it

  void before_fork();
  void in_forked_parent();
  void in_forked_child();
  const AtFork at_fork_{{.before = [this] { before_fork(); },
                         .in_parent = [this] { in_forked_parent(); },
                         .in_child = [this] { in_forked_child(); }}};
};

}  // namespace kiln
