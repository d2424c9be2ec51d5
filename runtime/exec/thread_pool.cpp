#include "runtime/exec/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "jit/base/cores.h"
#include "jit/base/process.h"
#include "runtime/exec/spin.h"

namespace kiln {

// One job at a time. A chunk is claimed by counting `unclaimed` down with compare-and-swap; whoever succeeds holds a
// chunk of the job that is current at that moment, and that job cannot end before the chunk is reported in
// `unfinished`. So the job's fields are read after a claim only, and no worker has to be waited for that did not come
// in time.
struct ThreadPool::State {
  // A job's tasks in consecutive chunks: more of them than threads, so that a thread that was late or is slow leaves
  // its share to the others, and small ones at the end, so that all end together.
  class Chunks {
   public:
    Chunks() = default;
    Chunks(int64_t tasks, int64_t threads)
        : tasks_(tasks),
          parts_(std::min(tasks, threads * large_per_thread * parts_in_large)),
          large_(parts_ < tasks ? threads * (large_per_thread - 2) : 0) {}

    int64_t count() const { return large_ + parts_ - large_ * parts_in_large; }
    // Where chunk `c` begins; at count(): the end.
    int64_t begin(int64_t c) const {
      const int64_t part = c < large_ ? c * parts_in_large : large_ * (parts_in_large - 1) + c;
      return part * (tasks_ / parts_) + std::min(part, tasks_ % parts_);
    }

   private:
    static constexpr int64_t large_per_thread = 8, parts_in_large = 4;
    int64_t tasks_ = 0, parts_ = 1, large_ = 0;  // parts: equal ones, the first tasks % parts of one task more
  };

  explicit State(uint32_t wanted) : threads(wanted) { workers.reserve(threads - 1); }

  const uint32_t threads;
  std::vector<Thread> workers;                // touched by the owner of `taken`
  std::atomic_flag taken = ATOMIC_FLAG_INIT;  // a thread runs a job on the workers

  // The job. Written by the owner of `taken` while unclaimed == unfinished == 0.
  Fn fn = nullptr;
  void *user = nullptr;
  Chunks chunks;

  alignas(64) std::atomic<int64_t> unclaimed{0};
  alignas(64) std::atomic<uint32_t> unfinished{0};
  alignas(64) std::atomic<uint32_t> epoch{0};  // raised for each job, and to stop
  std::atomic<bool> stop{false};

  // A child has no workers, and nobody runs a job in it yet.
  const AtFork at_fork{{.before = {}, .in_parent = {}, .in_child = [this] { forget_workers(); }}};

  void start_workers();
  void forget_workers();
  void work_on_chunks(uint32_t worker);
  void worker_main(uint32_t worker);
};

void ThreadPool::State::work_on_chunks(uint32_t worker) {
  int64_t left = unclaimed.load(std::memory_order_acquire);
  while (left > 0) {
    if (!unclaimed.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    const int64_t c = chunks.count() - left;
    fn(user, worker, chunks.begin(c), chunks.begin(c + 1));
    if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_all();
    left = unclaimed.load(std::memory_order_acquire);
  }
}

void ThreadPool::State::worker_main(uint32_t worker) {
  uint32_t seen = 0;
  while (!stop.load(std::memory_order_acquire)) {
    work_on_chunks(worker);
    const auto changed = [&] { return epoch.load(std::memory_order_acquire) != seen; };
    if (!spin_until(changed)) epoch.wait(seen, std::memory_order_acquire);
    seen = epoch.load(std::memory_order_acquire);
  }
}

void ThreadPool::State::start_workers() {
  for (uint32_t i = 1; i < threads; ++i) {
    Thread worker = Thread::start("kiln-worker", [this, i] { worker_main(i); });
    if (!worker) break;  // the system gives no more: those that started, and the caller, do the work
    workers.push_back(std::move(worker));
  }
}

void ThreadPool::State::forget_workers() {
  workers.clear();
  unclaimed = 0;
  unfinished = 0;
  taken.clear();
}

ThreadPool::ThreadPool(uint32_t threads)
    : state_(std::make_unique<State>(threads ? threads : usable_cores())), run_thread_(std::make_unique<RunThread>()) {}

ThreadPool::~ThreadPool() {
  run_thread_ = nullptr;  // which may still look for work
  state_->stop.store(true, std::memory_order_release);
  state_->epoch.fetch_add(1, std::memory_order_acq_rel);
  state_->epoch.notify_all();
  for (Thread &worker : state_->workers) worker.join();
}

uint32_t ThreadPool::threads() const { return state_->threads; }
RunThread &ThreadPool::run_thread() { return *run_thread_; }

void ThreadPool::run(int64_t tasks, Fn fn, void *user) {
  State &s = *state_;
  if (tasks <= 0) return;
  if (tasks == 1 || s.threads == 1 || s.taken.test_and_set(std::memory_order_acquire)) {
    fn(user, 0, 0, tasks);
    return;
  }
  if (s.workers.empty()) s.start_workers();

  s.fn = fn;
  s.user = user;
  s.chunks = State::Chunks(tasks, s.threads);
  s.unfinished.store(static_cast<uint32_t>(s.chunks.count()), std::memory_order_relaxed);
  s.unclaimed.store(s.chunks.count(), std::memory_order_release);
  s.epoch.fetch_add(1, std::memory_order_acq_rel);
  s.epoch.notify_all();

  s.work_on_chunks(0);
  const auto done = [&] { return s.unfinished.load(std::memory_order_acquire) == 0; };
  if (!spin_until(done)) {
    for (uint32_t left; (left = s.unfinished.load(std::memory_order_acquire)) != 0;)
      s.unfinished.wait(left, std::memory_order_acquire);
  }
  s.taken.clear(std::memory_order_release);
}

}  // namespace kiln
