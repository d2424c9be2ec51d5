// Runs a part of a test in a forked child, so that what it does to its process ends with it.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#if defined(__SANITIZE_THREAD__)
// The thread sanitizer otherwise ends a child that starts a thread where its parent had several.
extern "C" inline __attribute__((used, visibility("default"))) const char *__tsan_default_options() {
  return "die_after_fork=0";
}
// Its runtime does not know that the parent's threads are not in the child, and ends it where a new one is given the
// handle of one of those.
#define SKIP_WHERE_CHILDREN_HAVE_NO_THREADS() \
  GTEST_SKIP() << "SKIP: the thread sanitizer ends a child that starts threads as its parent did"
#else
#define SKIP_WHERE_CHILDREN_HAVE_NO_THREADS() static_cast<void>(0)
#endif

namespace kiln::test {

// What this process allocates from here on may be there still when it ends.
inline void expect_leaks() {
#if defined(__SANITIZE_ADDRESS__)
  __lsan_disable();
#endif
}

// How many of the running test's expectations have failed. A child inherits its parent's count.
inline int failures() {
  const ::testing::TestResult &result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
  int count = 0;
  for (int i = 0; i < result.total_part_count(); ++i) count += result.GetTestPartResult(i).failed();
  return count;
}

// Runs `body` in a child, whose failed expectations (printed there) are this test's. A child that hangs is ended by
// SIGALRM, which is a failure, too. With `by_exit` the child ends by exit(), as a host's main does.
template <class Body>
void in_child(Body body, bool by_exit = false) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(120);
    const int before = failures();
    body();
    std::fflush(nullptr);
    const int code = failures() > before ? 1 : 0;
    if (by_exit) std::exit(code);
    ::_exit(code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "the child was ended by signal " << (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 0) << "the child failed";
  }
}

}  // namespace kiln::test
