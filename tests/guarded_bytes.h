// Memory that lies flush against pages nobody may touch: an access beside it is a fault at the access itself.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace kiln::testing {

// `size` bytes at the very begin or the very end of whole pages; the page before those and the one after cannot be
// accessed. The other bytes of the pages, and those that nobody has written, are `untouched`.
class GuardedBytes {
 public:
  enum class Place : uint8_t { begin, end };
  static constexpr uint8_t untouched = 0xff;  // NaN to who reads there, and what must still be there afterwards

  GuardedBytes(size_t size, Place place) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), size_(size) {
    span_ = (size / page_ + 1) * page_;
    memory_ = static_cast<uint8_t *>(
        mmap(nullptr, span_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(pages(), span_, PROT_READ | PROT_WRITE) != 0) std::abort();
    std::memset(pages(), untouched, span_);
    begin_ = place == Place::begin ? pages() : pages() + span_ - size;
  }
  ~GuardedBytes() { munmap(memory_, span_ + 2 * page_); }
  GuardedBytes(const GuardedBytes &) = delete;
  GuardedBytes &operator=(const GuardedBytes &) = delete;

  uint8_t *begin() const { return begin_; }
  size_t size() const { return size_; }
  // Between the guards: [pages(), pages() + span()).
  uint8_t *pages() const { return memory_ + page_; }
  size_t span() const { return span_; }

 private:
  const size_t page_, size_;
  size_t span_ = 0;
  uint8_t *memory_ = nullptr, *begin_ = nullptr;
};

}  // namespace kiln::testing
