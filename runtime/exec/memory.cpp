#include "runtime/exec/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "jit/base/env.h"
#include "runtime/exec/layout.h"

namespace kiln {
namespace {

constexpr uint64_t small_alignment = 64, huge_page = uint64_t{2} << 20;
constexpr uint64_t largest = uint64_t{1} << 47;  // the address space; also what an overflowed size is above

// Kept for reuse at most: enough for the outputs of a few calls, little against what made them.
constexpr size_t max_kept_buffers = 16;
constexpr uint64_t max_kept_bytes = uint64_t{512} << 20;

uint64_t round_up(uint64_t size, uint64_t to) { return (size + to - 1) / to * to; }

Status out_of_memory(uint64_t size_bytes, std::string_view what) {
  return error(Code::out_of_memory, "cannot allocate ", size_bytes, " bytes for the ", what);
}

// Eight sizes to a power of two, so that an output that grows a little from call to call (a longer text) mostly finds
// the buffer of the last call large enough.
uint64_t size_class(uint64_t size) {
  const uint64_t step = std::max(small_alignment, std::bit_floor(size) / 8);
  return round_up(size, step);
}

}  // namespace

Result<Memory> Memory::allocate(uint64_t size_bytes, std::string_view what) {
  Memory memory;
  if (size_bytes == 0) return memory;
  // What would fill less than half of a huge page takes small ones: a whole one has to be cleared.
  const uint64_t huge = size_bytes < largest ? (size_bytes + huge_page / 2) / huge_page * huge_page : 0;
  memory.size_ = std::max(huge, round_up(size_bytes, small_alignment));
  void *data = nullptr;
  if (size_bytes >= largest || posix_memalign(&data, huge > 0 ? huge_page : small_alignment, memory.size_) != 0)
    return out_of_memory(size_bytes, what);
  memory.data_.reset(static_cast<uint8_t *>(data));
  if (huge > 0) (void)::madvise(data, huge, MADV_HUGEPAGE);  // advice: where they are off, small ones do
  return memory;
}

Status Memory::grow(uint64_t size_bytes, std::string_view what) {
  if (size_bytes <= size_) return {};
  *this = Memory();  // before the new one: both need not fit
  KILN_ASSIGN(*this, allocate(size_bytes, what));
  return {};
}

Status Areas::resize(std::span<const uint64_t> sizes_bytes, std::string_view what) {
  KILN_ASSIGN(const std::optional<uint32_t> guard, env_count(Env::KILN_GUARD_PAGES));
  if (guard && *guard > 2) return error(Code::invalid_argument, "KILN_GUARD_PAGES is ", *guard, ", expected 1 or 2");
  if (guard) return map_guarded(sizes_bytes, *guard == 1 ? Guard::end : Guard::begin, what);
  guarded_.reset();
  Layout layout(small_alignment);
  offsets_ = layout.add(sizes_bytes);
  return memory_.grow(layout.size_bytes(), what);
}

std::vector<void *> Areas::addresses() const {
  std::vector<void *> addresses;
  for (size_t i = 0; i < count(); ++i) addresses.push_back((*this)[i]);
  return addresses;
}

void Areas::Unmap::operator()(uint8_t *pages) const { (void)::munmap(pages, size_bytes); }

Status Areas::map_guarded(std::span<const uint64_t> sizes_bytes, Guard guard, std::string_view what) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  guarded_.reset();
  offsets_.clear();
  Layout layout(page);
  layout.add(page);
  std::vector<uint64_t> begins;
  for (uint64_t size : sizes_bytes) {
    const uint64_t rounded = round_up(std::min(size, largest), 8), pages = round_up(rounded, page);
    begins.push_back(layout.add(pages + page));
    offsets_.push_back(guard == Guard::begin ? begins.back() : begins.back() + pages - rounded);
  }
  const uint64_t end = layout.size_bytes();
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *mapping = end < largest ? ::mmap(nullptr, end, PROT_NONE, flags, -1, 0) : MAP_FAILED;
  if (mapping == MAP_FAILED) return out_of_memory(end, what);
  guarded_ = {static_cast<uint8_t *>(mapping), Unmap{end}};
  for (size_t i = 0; i < sizes_bytes.size(); ++i) {
    const uint64_t pages = round_up(sizes_bytes[i], page);
    if (pages == 0) continue;
    if (::mprotect(guarded_.get() + begins[i], pages, PROT_READ | PROT_WRITE) != 0) return out_of_memory(end, what);
    std::memset(guarded_.get() + begins[i], 0xff, pages);
  }
  return {};
}

BufferRecycler::BufferRecycler() { kept_.reserve(max_kept_buffers); }

Result<std::shared_ptr<OutputBuffer>> BufferRecycler::acquire(uint64_t size_bytes) {
  const uint64_t wanted = size_class(std::max<uint64_t>(size_bytes, 1));
  Memory memory;
  {
    const std::lock_guard lock(mutex_);
    // The smallest that is large enough, and not so large that most of it would lie idle.
    auto best = kept_.end();
    for (auto at = kept_.begin(); at != kept_.end(); ++at)
      if (at->size_bytes() >= size_bytes && at->size_bytes() / 2 <= wanted &&
          (best == kept_.end() || at->size_bytes() < best->size_bytes()))
        best = at;
    if (best != kept_.end()) {
      memory = std::move(*best);
      kept_.erase(best);
      kept_bytes_ -= memory.size_bytes();
    }
  }
  if (!memory.data()) {
    KILN_ASSIGN(memory, Memory::allocate(wanted, "output"));
  }
  return std::shared_ptr<OutputBuffer>(new OutputBuffer{std::move(memory)},
                                       [recycler = shared_from_this()](OutputBuffer *buffer) {
                                         const std::unique_ptr<OutputBuffer> owner(buffer);
                                         recycler->give_back(std::move(owner->memory));
                                       });
}

void BufferRecycler::give_back(Memory memory) noexcept {
  if (memory.size_bytes() > max_kept_bytes) return;
  std::unique_lock lock(mutex_);
  while (kept_.size() == max_kept_buffers || kept_bytes_ + memory.size_bytes() > max_kept_bytes) {
    Memory dropped = std::move(kept_.front());
    kept_bytes_ -= dropped.size_bytes();
    kept_.erase(kept_.begin());
    lock.unlock();
    dropped = Memory();
    lock.lock();
  }
  kept_bytes_ += memory.size_bytes();
  kept_.push_back(std::move(memory));  // within what the constructor reserved
}

uint64_t BufferRecycler::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

}  // namespace kiln
