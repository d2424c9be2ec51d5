#include "runtime/exec/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "jit/base/cores.h"
#include "tests/child.h"

namespace kiln {
namespace {

struct Tally {
  explicit Tally(int64_t tasks) : done(static_cast<size_t>(tasks)) {}
  static void run(void *user, uint32_t worker, int64_t begin, int64_t end) {
    auto &tally = *static_cast<Tally *>(user);
    for (int64_t i = begin; i < end; ++i) tally.done[static_cast<size_t>(i)]++;
    for (uint32_t seen = tally.max_worker; seen < worker && !tally.max_worker.compare_exchange_weak(seen, worker);) {
    }
  }
  bool all_once() const {
    for (int n : done)
      if (n != 1) return false;
    return true;
  }
  std::vector<int> done;  // not atomic: each task runs on one thread, and run() orders them before its return
  std::atomic<uint32_t> max_worker{0};
};

TEST(ThreadPool, RunsEachTaskOnce) {
  ThreadPool pool(4);
  for (int64_t tasks : {0, 1, 2, 3, 15, 16, 17, 127, 128, 129, 1000, 12345}) {
    Tally tally(tasks);
    pool.run(tasks, Tally::run, &tally);
    EXPECT_TRUE(tally.all_once()) << tasks;
    EXPECT_LT(tally.max_worker, pool.threads());
  }
}

TEST(ThreadPool, OneTaskRunsOnTheCaller) {
  ThreadPool pool(4);
  std::thread::id id;
  pool.run(
      1,
      [](void *user, uint32_t, int64_t, int64_t) {
        *static_cast<std::thread::id *>(user) = std::this_thread::get_id();
      },
      &id);
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(ThreadPool, ManyShortJobsInARow) {
  ThreadPool pool(3);
  Tally tally(1);
  for (int i = 0; i < 20000; ++i) {
    tally.done.assign(7, 0);
    pool.run(7, Tally::run, &tally);
    ASSERT_TRUE(tally.all_once()) << i;
  }
}

TEST(ThreadPool, JobsAfterAPauseWakeTheWorkers) {
  ThreadPool pool(2);
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Tally tally(64);
    pool.run(64, Tally::run, &tally);
    ASSERT_TRUE(tally.all_once());
  }
}

TEST(ThreadPool, SeveralThreadsMayUseItAtOnce) {
  ThreadPool pool(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        Tally tally(50);
        pool.run(50, Tally::run, &tally);
        wrong += !tally.all_once();
      }
    });
  for (std::thread &caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// Whether both threads of `pool` come to a job, of which each waits for the other.
bool both_come(ThreadPool &pool) {
  std::atomic<uint32_t> workers{0};  // a bit for each
  const auto wait_for_both = [](void *user, uint32_t worker, int64_t, int64_t) {
    auto &seen = *static_cast<std::atomic<uint32_t> *>(user);
    seen |= 1u << worker;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (seen != 3 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  pool.run(8, wait_for_both, &workers);
  return workers == 3;
}

TEST(ThreadPool, WorkersShareALongJob) {
  ThreadPool pool(2);
  EXPECT_TRUE(both_come(pool));
}

TEST(ThreadPool, HasWorkersOfItsOwnInAForkedChild) {
  SKIP_WHERE_CHILDREN_HAVE_NO_THREADS();
  ThreadPool pool(2);
  EXPECT_TRUE(both_come(pool));
  test::in_child([&] { EXPECT_TRUE(both_come(pool)); });
  EXPECT_TRUE(both_come(pool));
}

TEST(ThreadPool, IsNotBusyWhenIdle) {
  ThreadPool pool(4);
  Tally tally(100);
  pool.run(100, Tally::run, &tally);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto cpu_us = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000L + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  const long before = cpu_us();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(cpu_us() - before, 20'000);
}

TEST(ThreadPool, ZeroMeansOnePerUsableCore) { EXPECT_EQ(ThreadPool(0).threads(), usable_cores()); }

}  // namespace
}  // namespace kiln
