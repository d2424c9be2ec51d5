#include "runtime/background.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/child.h"

namespace kiln {
namespace {

TEST(Background, CloseWaitsForAllTasksInOrder) {
  std::vector<int> done;
  Background background;
  for (int i = 0; i < 100; i++) {
    background.submit([&done, i] {
      done.push_back(i);
      return Status();
    });
  }
  background.close();
  ASSERT_EQ(done.size(), 100u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(background.failures(), 0u);
}

TEST(Background, CountsFailuresAndKeepsTheFirst) {
  Background background;
  background.submit([] { return error(Code::io, "disk full"); });
  background.submit([]() -> Status { throw std::runtime_error("out of luck"); });
  background.close();
  EXPECT_EQ(background.failures(), 2u);
  EXPECT_EQ(background.first_failure(), "disk full");
}

TEST(Background, RunsAtOnceAfterClose) {
  Background background;
  background.close();
  bool ran = false;
  background.submit([&ran] {
    ran = true;
    return Status();
  });
  EXPECT_TRUE(ran);
  background.close();  // again: nothing happens
}

// The fork's first hook waits for a thread that submits the first task. The hooks of `background` come after it.
TEST(Background, StartsItsThreadWhileAForkBegins) {
  test::in_child([] {
    bool is_done = false;
    Background background;
    const AtFork first({.before =
                            [&] {
                              std::thread([&] {
                                background.submit([&] {
                                  is_done = true;
                                  return Status();
                                });
                              }).join();
                            },
                        .in_parent = {},
                        .in_child = {}});
    test::in_child([] {});
    background.close();
    EXPECT_TRUE(is_done);
  });
}

// The hooks of `background` come between those of `begins` and `goes_on`. The task ends only after the fork began, and
// gives it time to go on.
TEST(Background, AForkWaitsForTheTaskUnderWay) {
  SKIP_WHERE_CHILDREN_HAVE_NO_THREADS();
  test::in_child([] {
    std::atomic<bool> has_begun = false, has_gone_on = false, is_done = false;
    bool was_done = false;
    const AtFork goes_on({.before =
                              [&] {
                                was_done = is_done;
                                has_gone_on = true;
                              },
                          .in_parent = {},
                          .in_child = {}});
    Background background;
    const AtFork begins({.before = [&] { has_begun = true; }, .in_parent = {}, .in_child = {}});
    std::latch under_way(1);
    background.submit([&] {
      under_way.count_down();
      while (!has_begun) std::this_thread::yield();
      for (int ms = 0; ms < 50 && !has_gone_on; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      is_done = true;
      return Status();
    });
    under_way.wait();
    test::in_child([&] {
      bool is_done_by_child = false;
      background.submit([&] {
        is_done_by_child = true;
        return Status();
      });
      background.close();
      EXPECT_TRUE(is_done_by_child);
    });
    EXPECT_TRUE(was_done);
    background.close();
  });
}

}  // namespace
}  // namespace kiln
