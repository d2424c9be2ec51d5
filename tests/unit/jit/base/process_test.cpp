#include "jit/base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "tests/child.h"
#include "tests/temporary_folder.h"

namespace kiln {
namespace {

TEST(Thread, RunsItsBodyUntilJoined) {
  int done = 0;
  Thread thread = Thread::start("kiln-test", [&] { done = 1; });
  EXPECT_TRUE(thread);
  thread.join();
  EXPECT_FALSE(thread);
  EXPECT_EQ(done, 1);
}

TEST(Thread, BlocksAllSignalsAndComputesInTheDefaultEnvironment) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush to zero, subnormals are zero
  sigset_t mask;
  unsigned controls = 0;
  char name[16] = "";
  Thread::start("kiln-test", [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    controls = _mm_getcsr();
    pthread_getname_np(pthread_self(), name, sizeof name);
  }).join();
  EXPECT_EQ(_mm_getcsr() & 0xffc0u, (before & 0xffc0u) | 0x8040);
  _mm_setcsr(before);
  EXPECT_EQ(controls & 0xffc0u, 0x1f80u);
  for (int number : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGPROF, SIGXFSZ}) EXPECT_EQ(sigismember(&mask, number), 1);
  EXPECT_STREQ(name, "kiln-test");
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGUSR1), 0) << "of its starter";
}

TEST(Thread, IsForgottenInAForkedChild) {
  SKIP_WHERE_CHILDREN_HAVE_NO_THREADS();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  std::atomic<bool> runs = false;
  Thread thread = Thread::start("kiln-test", [&] {
    runs = true;
    char byte;
    EXPECT_EQ(read(pipe_ends[0], &byte, 1), 1);
  });
  while (!runs) std::this_thread::yield();  // the address sanitizer's locks do not survive a fork while it starts
  test::in_child([&] {
    EXPECT_FALSE(thread);
    thread.join();  // returns
    int done = 0;
    Thread::start("kiln-test", [&] { done = 1; }).join();
    EXPECT_EQ(done, 1);
  });
  EXPECT_TRUE(thread);
  EXPECT_EQ(write(pipe_ends[1], "x", 1), 1);
  thread.join();
  for (int end : pipe_ends) close(end);
}

TEST(AtFork, RunsItsHooksInOrder) {
  std::string said;
  const auto hooks = [&said](char name) {
    return AtFork::Hooks{.before = [&said, name] { said += name; },
                         .in_parent = [&said, name] { said += {'p', name, ' '}; },
                         .in_child = [&said, name] { said += {'c', name, ' '}; }};
  };
  const AtFork a(hooks('a'));
  {
    const AtFork gone(hooks('x'));
    const AtFork b(hooks('b'));
    test::in_child([&] { EXPECT_EQ(said, "bxaca cx cb "); });
    EXPECT_EQ(said, "bxapa px pb ");
  }
  said.clear();
  test::in_child([&] { EXPECT_EQ(said, "aca "); });
}

TEST(WriteSignalsHeld, MakeAWriteBeyondTheLimitFail) {
  const test::TemporaryFolder folder;
  test::in_child([&] {
    const int file = open(folder.file("limited").c_str(), O_CREAT | O_RDWR, 0600);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    {
      const WriteSignalsHeld held;
      EXPECT_EQ(write(file, "x", 1), -1);
      EXPECT_EQ(errno, EFBIG);
    }
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    close(ends[0]);
    {
      const WriteSignalsHeld held;
      EXPECT_EQ(write(ends[1], "x", 1), -1);
    }
    EXPECT_EQ(errno, EPIPE) << "kept";
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGXFSZ), 0);
    EXPECT_EQ(sigismember(&mask, SIGPIPE), 0);
  });
}

TEST(WriteSignalsHeld, LeaveWhatTheHostBlocked) {
  test::in_child([] {
    sigset_t pipe_signal, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    pthread_kill(pthread_self(), SIGPIPE);
    {
      const WriteSignalsHeld held;
    }
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGPIPE), 1) << "it waited before";
  });
}

}  // namespace
}  // namespace kiln
