#include "runtime/exec/run_thread.h"

#include <chrono>
#include <new>

#include "runtime/exec/spin.h"

namespace kiln {
namespace {

// The lowest bit of given_: the thread sleeps, and nobody has woken it yet. The others count.
constexpr uint32_t asleep = 1, once = 2;

// Wakes the thread once for each sleep: while it waits for a core, further calls to the system would be for nothing.
void raise(std::atomic<uint32_t> &given) {
  uint32_t before = given.load(std::memory_order_relaxed);
  while (!given.compare_exchange_weak(before, (before & ~asleep) + once, std::memory_order_acq_rel)) {
  }
  if (before & asleep) given.notify_one();
}

}  // namespace

RunThread::~RunThread() {
  stop_ = true;
  raise(given_);
  thread_.join();
}

// It is held for some instructions only, by a thread that runs: to sleep would take longer.
std::unique_lock<std::mutex> RunThread::locked() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int i = 0; i < 100 && !lock; ++i) {
    pause_cpu();
    (void)lock.try_lock();
  }
  if (!lock) lock.lock();
  return lock;
}

void RunThread::give(Job &job) {
  job.over_.store(false, std::memory_order_relaxed);
  job.next_ = nullptr;
  bool has_thread = false;
  {
    const std::unique_lock lock = locked();
    if (!thread_) thread_ = Thread::start("kiln-run", [this] { work(); });
    has_thread = static_cast<bool>(thread_);
    if (has_thread) {
      (last_ ? last_->next_ : first_) = &job;
      last_ = &job;
    }
  }
  if (!has_thread) {
    job.run(true);
    job.over_.store(true, std::memory_order_relaxed);
    return;
  }
  raise(given_);
}

RunThread::Job *RunThread::take_first() {
  const std::unique_lock lock = locked();
  Job *const job = first_;
  if (job) first_ = job->next_;
  if (!first_) last_ = nullptr;
  return job;
}

bool RunThread::take_back(Job &job) {
  const std::unique_lock lock = locked();
  Job *before = nullptr;
  for (Job *at = first_; at; before = at, at = at->next_) {
    if (at != &job) continue;
    (before ? before->next_ : first_) = job.next_;
    if (last_ == &job) last_ = before;
    return true;
  }
  return false;
}

void RunThread::end(Job &job) {
  const std::unique_lock lock = locked();
  job.over_.store(true, std::memory_order_release);  // from here on it may be gone
  if (waiting_) ended_.notify_all();
}

void RunThread::work() {
  while (!stop_.load(std::memory_order_acquire)) {
    const uint32_t seen = given_.load(std::memory_order_acquire);
    if (Job *job = take_first()) {
      job->run(false);
      end(*job);
      continue;
    }
    if (spin_until([&] { return given_.load(std::memory_order_acquire) != seen; })) continue;
    uint32_t unchanged = seen;
    if (given_.compare_exchange_strong(unchanged, seen | asleep, std::memory_order_acq_rel))
      given_.wait(seen | asleep, std::memory_order_acquire);
  }
}

void RunThread::finish(Job &job) {
  constexpr auto between = std::chrono::milliseconds(50);
  if (job.is_over()) return;
  if (take_back(job)) {
    job.run(true);
    job.over_.store(true, std::memory_order_relaxed);
    return;
  }
  if (spin_until([&] { return job.is_over(); })) return;
  std::unique_lock lock(mutex_);
  ++waiting_;
  while (!job.is_over()) {
    ended_.wait_for(lock, between);
    if (job.is_over()) break;
    lock.unlock();
    job.while_waiting();
    lock.lock();
  }
  --waiting_;
}

void RunThread::in_forked_child() {
  thread_ = Thread();
  first_ = last_ = nullptr;
  waiting_ = 0;
  new (&ended_) std::condition_variable;  // whoever waits on the old one is not here: its destructor would wait for it
  mutex_.unlock();
}

}  // namespace kiln
