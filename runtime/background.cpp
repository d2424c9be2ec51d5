#include "runtime/background.h"

#include <exception>
#include <new>

namespace kiln {

void Background::submit(std::function<Status()> task) {
  {
    std::lock_guard lock(mutex_);
    if (!closed_ && !thread_) thread_ = Thread::start("kiln-save", [this] { work(); });
    if (!closed_ && thread_) {
      tasks_.push_back(std::move(task));
      wake_.notify_one();
      return;
    }
  }
  run(task);
}

void Background::close() {
  Thread thread;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    thread = std::move(thread_);
    wake_.notify_one();
  }
  thread.join();
}

uint64_t Background::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

std::string Background::first_failure() const {
  std::lock_guard lock(mutex_);
  if (failures_ == 0) return "";
  return first_failure_ ? first_failure_->message : "out of memory";
}

void Background::work() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
    }
    const std::lock_guard running(running_);
    std::function<Status()> task;
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty()) return;  // closed, and all is done
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    run(task);
  }
}

void Background::run(const std::function<Status()> &task) {
  bool out_of_memory = false;
  Status status;
  try {
    status = task();
  } catch (const std::exception &) {  // bad_alloc: nothing may leave a thread
    out_of_memory = true;
  }
  if (status.ok() && !out_of_memory) return;
  std::lock_guard lock(mutex_);
  if (failures_++ > 0) return;
  first_failure_ = out_of_memory ? nullptr : status.info();
}

void Background::before_fork() {
  running_.lock();
  mutex_.lock();
}

void Background::in_forked_parent() {
  mutex_.unlock();
  running_.unlock();
}

void Background::in_forked_child() {
  tasks_.clear();
  thread_ = Thread();
  new (&wake_) std::condition_variable;  // whoever waits on the old one is not here: its destructor would wait for it
  in_forked_parent();
}

}  // namespace kiln
