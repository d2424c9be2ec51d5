// Memory of calls: arenas, scratch, prepared values, and outputs that are recycled.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/base/status.h"

namespace kiln {

// One uninitialised block: 64-byte aligned; from 1 MiB on aligned to 2 MiB, and asked of the system in huge pages as
// far as they would be half full at least (first touch of fresh 4 KiB pages costs more than most arithmetic on them).
class Memory {
 public:
  Memory() = default;
  // `what` is for the message: "arena". code out_of_memory.
  static Result<Memory> allocate(uint64_t size_bytes, std::string_view what);
  Memory(Memory &&other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Memory &operator=(Memory &&other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  uint8_t *data() const { return data_.get(); }
  uint64_t size_bytes() const { return size_; }
  // Makes it hold at least `size_bytes`; what it held is lost then.
  Status grow(uint64_t size_bytes, std::string_view what);

 private:
  struct Free {
    void operator()(void *data) const { std::free(data); }
  };
  std::unique_ptr<uint8_t, Free> data_;
  uint64_t size_ = 0;
};

// Areas that begin 64-byte aligned, one after the other in one block. Under KILN_GUARD_PAGES each has pages of its own
// between two that cannot be accessed, is flush with one of these two (but for at most 7 bytes), and holds NaN at
// first.
class Areas {
 public:
  // Makes them as large as `sizes_bytes`, in order; what they held is lost then. Errors: as Memory::allocate.
  Status resize(std::span<const uint64_t> sizes_bytes, std::string_view what);
  uint8_t *operator[](size_t area) const { return (guarded_ ? guarded_.get() : memory_.data()) + offsets_[area]; }
  size_t count() const { return offsets_.size(); }
  std::vector<void *> addresses() const;
  uint64_t size_bytes() const { return guarded_ ? guarded_.get_deleter().size_bytes : memory_.size_bytes(); }

 private:
  enum class Guard : uint8_t { end = 1, begin = 2 };
  struct Unmap {
    uint64_t size_bytes;
    void operator()(uint8_t *pages) const;
  };
  Status map_guarded(std::span<const uint64_t> sizes_bytes, Guard guard, std::string_view what);

  Memory memory_;
  std::unique_ptr<uint8_t, Unmap> guarded_;  // in place of memory_: areas and the pages between them
  std::vector<uint64_t> offsets_;
};

struct OutputBuffer {
  Memory memory;
};

// Outputs that were let go of, kept for the next that need about as much. Any thread.
class BufferRecycler : public std::enable_shared_from_this<BufferRecycler> {
 public:
  BufferRecycler();
  // At least `size_bytes`. The buffer comes back here when its last owner lets go, on that owner's thread.
  Result<std::shared_ptr<OutputBuffer>> acquire(uint64_t size_bytes);
  uint64_t kept_bytes() const;

 private:
  void give_back(Memory memory) noexcept;  // on an owner's way out, which nothing may stop

  mutable std::mutex mutex_;
  std::vector<Memory> kept_;  // oldest first
  uint64_t kept_bytes_ = 0;
};

}  // namespace kiln
