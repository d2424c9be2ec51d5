// The thread that makes runs whose callers do not wait for them, one after the other. One per context; it starts with
// the first of them, spins briefly when it has nothing to do, then sleeps. Who waits for a run that has not begun makes
// it itself. A forked child starts a thread of its own; runs that were in flight are the parent's.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "jit/base/process.h"

namespace kiln {

// Threads: any.
class RunThread {
 public:
  // One run, and again later. Not given twice at once; it stays until it is over.
  class Job {
   public:
    Job() = default;
    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;
    virtual ~Job() = default;
    // Whether it need not be waited for: what it did is seen then.
    bool is_over() const { return over_.load(std::memory_order_acquire); }

   private:
    friend class RunThread;
    // `on_callers_thread`: inside finish() or, where there is no thread, give().
    virtual void run(bool on_callers_thread) noexcept = 0;
    // While somebody waits in finish(), now and then, on the thread that waits.
    virtual void while_waiting() noexcept = 0;

    std::atomic<bool> over_{true};
    Job *next_ = nullptr;
  };

  RunThread() = default;
  RunThread(const RunThread &) = delete;
  RunThread &operator=(const RunThread &) = delete;
  ~RunThread();  // no job is given or waited for any more

  // Returns at once, unless the system gives no thread: then the job is over.
  void give(Job &job);
  // Returns when it is over: it is run here, if the thread has not come to it.
  void finish(Job &job);

 private:
  void work();
  std::unique_lock<std::mutex> locked();
  Job *take_first();  // null: there is none
  bool take_back(Job &job);
  void end(Job &job);

  std::mutex mutex_;
  std::condition_variable ended_;
  uint32_t waiting_ = 0;                    // threads that sleep in finish()
  Job *first_ = nullptr, *last_ = nullptr;  // which have not begun
  Thread thread_;
  std::atomic<uint32_t> given_{0};  // how often there was something to do, or to stop for
  std::atomic<bool> stop_{false};

  const AtFork at_fork_{{.before = [this] { mutex_.lock(); },
                         .in_parent = [this] { mutex_.unlock(); },
                         .in_child = [this] { in_forked_child(); }}};
  void in_forked_child();
};

}  // namespace kiln
