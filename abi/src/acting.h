// For whom this thread acts: a call that needs a deep stack is done by another thread while the caller waits, and the
// handles that a callback is given are for the thread that it runs on.
#pragma once
#include <chrono>
#include <cstdint>
#include <string_view>
#include <thread>

namespace kiln {
struct PassContext;
}

namespace kiln::abi {

struct Acting {
  std::thread::id thread = {};  // none: this one, for itself
  uint32_t compiles = 0;        // that it is inside of: a pass may compile

  static Acting &here();  // in one place: gold exports thread_local variables of inline functions, whatever it is told
  static std::thread::id id() {
    const std::thread::id waiting = here().thread;
    return waiting == std::thread::id() ? std::this_thread::get_id() : waiting;
  }
};

// For its life this thread acts for another.
class ActingFor {
 public:
  ActingFor(std::thread::id thread, uint32_t compiles) : before_(Acting::here()) {
    Acting::here() = {thread, compiles};
  }
  ActingFor(const ActingFor &) = delete;
  ActingFor &operator=(const ActingFor &) = delete;
  ~ActingFor() { Acting::here() = before_; }

 private:
  const Acting before_;
};

// A callback that runs, of a pass or an op. What it is given refers to it.
struct Callback {
  std::string_view what;        // for messages: "pass", "function"
  PassContext *pass = nullptr;  // of a pass's run
  bool only_adds = false;       // a decomposition: the rest of the graph is not its own
  const std::thread::id thread = Acting::id();
  mutable std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now();  // whether the host cancels

  bool is_here() const { return Acting::id() == thread; }
  // Now and then asks the host whether it cancels; a pass that it cancelled, or that has taken too long, gets no more
  // answers: then why.
  std::string_view cancelled_by() const;
  bool is_cancelled() const { return !cancelled_by().empty(); }
};

}  // namespace kiln::abi
