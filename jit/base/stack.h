// Room for code that recurses over nested graphs and expressions. How deep both go is limited (32 graphs, 200 levels);
// but the small stacks that some hosts give their threads do not hold so many.
#pragma once
#include "jit/base/callback.h"
#include "jit/base/process.h"

namespace kiln {

// Whether this thread has less stack left than that.
bool is_stack_short();

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
