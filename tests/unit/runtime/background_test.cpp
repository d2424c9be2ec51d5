#include "runtime/background.h"

#include <gtest/gtest.h>

#include <algorithm>
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

}  // namespace
}  // namespace kiln
