// What belongs to the process and not to an object: threads, their signals, forks. The head of kiln.h tells hosts what
// follows from it. Each library that links jit/base has its own.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <cstdint>
#include <functional>

namespace kiln {

// A thread of Kiln's own. All signals are blocked on it (the host's handlers must not run on threads that the host does
// not know), it computes in the default floating-point environment, whatever its starter's is, and its stack is of 8
// MiB, whatever the limit. The destructor joins. In a forked child, where the thread is not, it is forgotten.
class Thread {
 public:
  Thread() = default;
  // `name` has at most 15 bytes; `body` throws nothing. Empty where the system gives no thread (or no memory for one):
  // the caller then does the work itself. Takes no lock, so that it may be called under any.
  static Thread start(const char *name, std::function<void()> body) noexcept;
  Thread(Thread &&other) noexcept;
  Thread &operator=(Thread &&other) noexcept;
  ~Thread() { join(); }
  explicit operator bool() const;
  void join();

 private:
  pthread_t handle_ = 0;
  uint64_t process_ = 0;  // in which it runs; 0: none
};

// How an object lives through fork(): what its threads and locks are in the child. All three run on the forking thread;
// none may fork, start a thread, or make or destroy an AtFork; each may be empty. Those that were made later come first
// in `before`, last in the others. A member that is declared last is registered as long as all that it speaks of
// exists.
//
// Order of locks: the list of all AtFork objects, then what the hooks take, each object's after those of objects made
// later. A fork holds all of them from `before` to the others; making and destroying an AtFork takes the list. So
// nobody makes or destroys one (or what has one: a context) while it holds a lock that a hook takes, and no hook takes
// a lock that is held while foreign code runs (a plugin's, a host's), for that may make what it likes. A child needs no
// such lock: where another thread is inside Kiln, it may only exec or _exit.
class AtFork {
 public:
  struct Hooks {
    std::function<void()> before;     // in the parent: takes the locks that protect what the child will read
    std::function<void()> in_parent;  // gives them back
    std::function<void()> in_child;   // gives them back, and forgets the threads
  };
  explicit AtFork(Hooks hooks);
  AtFork(const AtFork &) = delete;
  AtFork &operator=(const AtFork &) = delete;
  ~AtFork();

 private:
  friend struct ForkList;
  const Hooks hooks_;
  AtFork *older_ = nullptr, *newer_ = nullptr;
};

// For its life, a write on this thread that the system would answer with a signal (SIGXFSZ: beyond the limit on the
// size of files; SIGPIPE: nobody reads) fails with EFBIG or EPIPE alone, so that no optional write ends the host.
class WriteSignalsHeld {
 public:
  WriteSignalsHeld();
  WriteSignalsHeld(const WriteSignalsHeld &) = delete;
  WriteSignalsHeld &operator=(const WriteSignalsHeld &) = delete;
  ~WriteSignalsHeld();

 private:
  sigset_t mask_before_{}, raised_{};  // raised_: those that a write may raise here and that did not wait before
};

}  // namespace kiln
