// Worker threads for kernels: spin briefly, then sleep; never busy when idle. One per context; calls on several threads
// may use it at once (one gets the workers, the others run on their own thread alone). In a forked child it starts its
// workers anew.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/exec/run_thread.h"

namespace kiln {

class ThreadPool {
 public:
  explicit ThreadPool(
      uint32_t threads);  // 0: one per usable core. The calling thread counts as one; workers start lazily
  ~ThreadPool();
  uint32_t threads() const;
  // Splits [0, tasks) into ranges, run on the workers and the caller; returns when all are done. `worker` < threads()
  // tells scratch apart. fn must not call run.
  using Fn = void (*)(void *user, uint32_t worker, int64_t begin, int64_t end);
  void run(int64_t tasks, Fn fn, void *user);
  // What makes runs that nobody waits for yet: it calls run() as other callers do.
  RunThread &run_thread();

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::unique_ptr<RunThread> run_thread_;
};

}  // namespace kiln
