// Room for code that recurses over nested graphs and expressions. How deep both go is limited (32 graphs, 200 levels);
// but the small stacks that some hosts give their threads do not hold so many.
#pragma once
#include <thread>

#include "jit/base/process.h"

namespace kiln {

// Whether this thread has less stack left than that.
bool is_stack_short();

// This thread or, where it does another's work below, that other: the one that the host called on.
std::thread::id calling_thread();

// For its life, this thread works for `caller`.
class WorksFor {
 public:
  explicit WorksFor(std::thread::id caller);
  WorksFor(const WorksFor &) = delete;
  WorksFor &operator=(const WorksFor &) = delete;
  ~WorksFor();
};

// Runs `body`, which throws nothing: here or, where the stack is short, on a thread of Kiln's own while this one waits.
// False: the system gives no thread.
template <class Body>
[[nodiscard]] bool on_deep_stack(const Body &body) {
  if (!is_stack_short()) {
    body();
    return true;
  }
  Thread thread = Thread::start("kiln-call", [&body, caller = calling_thread()] {
    const WorksFor works_for(caller);
    body();
  });
  const bool started(thread);
  thread.join();
  return started;
}

}  // namespace kiln
