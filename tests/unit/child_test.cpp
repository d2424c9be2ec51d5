#include "tests/child.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

// What happens here happens in a child that says nothing: the failures are meant.
template <class Body>
int failures_of(Body body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stdout)) ::_exit(100);
    body();
    ::_exit(failures());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(InChild, FailsWhereItsBodyFails) {
  EXPECT_EQ(failures_of([] { in_child([] {}); }), 0);
  EXPECT_EQ(failures_of([] { in_child([] { ADD_FAILURE(); }); }), 1);
  EXPECT_EQ(failures_of([] { in_child([] { ::raise(SIGKILL); }); }), 1);
}

TEST(InChild, DoesNotFailForWhatFailedBefore) {
  EXPECT_EQ(failures_of([] {
              ADD_FAILURE();
              in_child([] {});
            }),
            1);
}

}  // namespace
}  // namespace kiln::test
