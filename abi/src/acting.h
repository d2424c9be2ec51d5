// For whom this thread acts: a call that needs a deep stack is done by another thread while the caller waits, and the
// handles of a pass are for the thread that it runs on.
#pragma once
#include <cstdint>
#include <thread>

namespace kiln::abi {

struct Acting {
  std::thread::id thread = {};  // none: this one, for itself
  uint32_t compiles = 0;        // that it is inside of: a pass may compile

  static Acting &here() {
    thread_local Acting acting;
    return acting;
  }
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

}  // namespace kiln::abi
