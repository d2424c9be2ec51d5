// Handles that live for one callback. Their memory is the process's and is taken in turn: a handle that is used after
// its callback has returned is refused, and reads no memory that is another's, until as many have run since.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace kiln::abi {

template <class Handle>
class Passing {
 public:
  template <class... Args>
  explicit Passing(Args &&...args) {
    for (size_t i = 0; i < kept && !memory_; i++) {
      Memory &memory = all[next++ % kept];
      if (!memory.taken.exchange(true)) memory_ = &memory;
    }
    void *at = memory_ ? memory_->bytes : (spare_ = std::make_unique<Memory>())->bytes;
    handle_ = new (at) Handle(std::forward<Args>(args)...);
  }
  Passing(const Passing &) = delete;
  Passing &operator=(const Passing &) = delete;
  ~Passing() {
    handle_->~Handle();
    if (memory_) memory_->taken = false;
  }
  Handle *get() const { return handle_; }
  Handle *operator->() const { return handle_; }

 private:
  static constexpr size_t kept = 256;
  struct Memory {
    alignas(Handle) std::byte bytes[sizeof(Handle)];
    std::atomic<bool> taken = false;
  };
  static inline std::array<Memory, kept> all;
  static inline std::atomic<size_t> next = 0;

  Memory *memory_ = nullptr;
  std::unique_ptr<Memory> spare_;  // so many run at once
  Handle *handle_;
};

}  // namespace kiln::abi
