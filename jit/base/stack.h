// The stack that code needs which recurses over nested graphs and expressions: both have limits (32 graphs, 200
// levels), which are more than the small stacks hold that some hosts give their threads.
#pragma once
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
  Thread thread = Thread::start("kiln-call", [&body] { body(); });
  const bool started(thread);
  thread.join();
  return started;
}

}  // namespace kiln
