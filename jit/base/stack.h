// Room for code that recurses over nested graphs and expressions. How deep both go is limited (32 graphs, 200 levels);
// but the small stacks that some hosts give their threads do not hold so many.
#pragma once
#include "jit/base/process.h"

namespace kiln {

// Whether this thread has less stack left than that.
bool is_stack_short();

// For its life, what this thread calls is foreign code that a compile called: a pass, the host's sink of events. What
// such code asks of Kiln must not wait for compiles, for the one that it is in may be among them.
class InCallback {
 public:
  explicit InCallback(bool is = true);
  InCallback(const InCallback &) = delete;
  InCallback &operator=(const InCallback &) = delete;
  ~InCallback();
  // Of this thread, or of the one that waits while this one works for it.
  static bool here();

 private:
  const bool before_;
};

// Runs `body`, which throws nothing: here or, where the stack is short, on a thread of Kiln's own while this one waits.
// False: the system gives no thread.
template <class Body>
[[nodiscard]] bool on_deep_stack(const Body &body) {
  if (!is_stack_short()) {
    body();
    return true;
  }
  Thread thread = Thread::start("kiln-call", [&body, in_callback = InCallback::here()] {
    const InCallback as_caller(in_callback);
    body();
  });
  const bool started(thread);
  thread.join();
  return started;
}

}  // namespace kiln
