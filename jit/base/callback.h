// Whether foreign code is at work that Kiln called.
#pragma once

namespace kiln {

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

}  // namespace kiln
