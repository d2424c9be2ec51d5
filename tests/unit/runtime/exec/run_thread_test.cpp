#include "runtime/exec/run_thread.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

namespace kiln {
namespace {

// Notes where it ran; one that is held does not end before it is let go.
class NotingJob : public RunThread::Job {
 public:
  std::atomic<bool> held = false, runs = false;
  std::atomic<int> asked = 0, ran = 0;
  bool here = false;
  std::thread::id thread;

 private:
  void run(bool on_callers_thread) noexcept override {
    here = on_callers_thread;
    thread = std::this_thread::get_id();
    runs = true;
    while (held) std::this_thread::yield();
    ++ran;
  }
  void while_waiting() noexcept override {
    if (++asked == 2) held = false;
  }
};

TEST(RunThread, WhoWaitsForAJobThatHasNotBegunRunsIt) {
  RunThread thread;
  NotingJob first, second;
  EXPECT_TRUE(second.is_over());
  first.held = true;
  thread.give(first);
  while (!first.runs) std::this_thread::yield();
  thread.give(second);
  EXPECT_FALSE(second.is_over());
  thread.finish(second);
  EXPECT_TRUE(second.is_over());
  EXPECT_TRUE(second.here);
  EXPECT_EQ(second.thread, std::this_thread::get_id());
  EXPECT_FALSE(first.is_over());
  first.held = false;
  thread.finish(first);
  EXPECT_FALSE(first.here);
  EXPECT_NE(first.thread, std::this_thread::get_id());
}

TEST(RunThread, WhoWaitsIsAskedNowAndThen) {
  RunThread thread;
  NotingJob job;
  job.held = true;
  thread.give(job);
  while (!job.runs) std::this_thread::yield();
  thread.finish(job);
  EXPECT_GE(job.asked, 2);
  EXPECT_EQ(job.ran, 1);
}

TEST(RunThread, JobsOfManyThreadsRunOnceEach) {
  RunThread thread;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::deque<NotingJob> jobs(3);
      for (int i = 0; i < 200; ++i) {
        for (NotingJob &job : jobs) thread.give(job);
        for (NotingJob &job : jobs) {
          if (t == 0) {
            while (!job.is_over()) std::this_thread::yield();
          }
          thread.finish(job);
          EXPECT_EQ(job.ran, i + 1);
        }
      }
    });
  }
  for (std::thread &each : threads) each.join();
}

}  // namespace
}  // namespace kiln
