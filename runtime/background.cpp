#include "runtime/background.h"

#include <exception>
#include <system_error>

namespace kiln {

void Background::submit(std::function<Status()> task) {
  {
    std::lock_guard lock(mutex_);
    if (!closed_) {
      try {
        if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
        tasks_.push_back(std::move(task));
        wake_.notify_one();
        return;
      } catch (const std::system_error &) {
        // No thread to be had: the task runs below.
      }
    }
  }
  run(task);
}

void Background::close() {
  std::thread thread;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    thread = std::move(thread_);
    wake_.notify_one();
  }
  if (thread.joinable()) thread.join();
}

uint64_t Background::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

std::string Background::first_failure() const {
  std::lock_guard lock(mutex_);
  return first_failure_;
}

void Background::work() {
  for (;;) {
    std::function<Status()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
      if (tasks_.empty()) return;  // closed, and all is done
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    run(task);
  }
}

void Background::run(const std::function<Status()> &task) {
  Status status;
  try {
    status = task();
  } catch (const std::exception &exception) {  // bad_alloc: nothing may leave a thread
    status = error(Code::out_of_memory, exception.what());
  }
  if (status.ok()) return;
  std::lock_guard lock(mutex_);
  if (failures_++ == 0) first_failure_ = status.message();
}

}  // namespace kiln
