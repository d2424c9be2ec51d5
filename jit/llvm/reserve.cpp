#include "jit/llvm/reserve.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>

extern "C" {
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
}

namespace kiln::codegen {
namespace {

constexpr size_t block_alignment = 16, class_count = size_t{4} * 48;

// What precedes a block. A free one links to the next of its class.
struct alignas(block_alignment) Header {
  size_t capacity;
  Header *next;
};
static_assert(sizeof(Header) == block_alignment);

// Four sizes to a power of two.
size_t capacity_for(size_t size) {
  const size_t least = std::max(size, 4 * block_alignment), step = std::bit_floor(least) / 4;
  return (least + step - 1) / step * step;
}

size_t class_of(size_t capacity) {
  const auto power = static_cast<size_t>(std::bit_width(capacity)) - 1;
  return power * 4 + (capacity >> (power - 2) & 3);
}

}  // namespace

struct Reserve::Pool {
  char *begin;
  size_t size;
  bool held = false;
  size_t end_of_used = 0;  // what lies beyond it was never given out
  size_t in_use = 0;       // bytes of blocks
  Pool *next = nullptr;
  Header *free_blocks[class_count] = {};

  bool owns(const void *block) const {
    return reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(begin) < size;
  }

  void *allocate(size_t bytes, size_t alignment) {
    if (bytes > size) return nullptr;
    const size_t capacity = capacity_for(bytes);
    Header *&head = free_blocks[class_of(capacity)];
    Header *header = nullptr;
    if (alignment <= block_alignment && head) {
      header = head;
      head = header->next;
    } else {
      const auto base = reinterpret_cast<uintptr_t>(begin);
      const uintptr_t block = (base + end_of_used + sizeof(Header) + alignment - 1) / alignment * alignment;
      if (block - base > size || size - (block - base) < capacity) return nullptr;
      header = new (reinterpret_cast<char *>(block) - sizeof(Header)) Header{capacity, nullptr};
      end_of_used = block - base + capacity;
    }
    in_use += header->capacity;
    return header + 1;
  }

  void free(void *block) {
    Header *header = static_cast<Header *>(block) - 1;
    Header *&head = free_blocks[class_of(header->capacity)];
    header->next = head;
    head = header;
    in_use -= header->capacity;
    if (in_use > 0) return;
    std::ranges::fill(free_blocks, nullptr);
    end_of_used = 0;
  }
};

namespace {

using Pool = Reserve::Pool;

// A library's thread-local data is made when a thread first touches it, and the process ends when there is no memory
// for it then. One variable of this kind puts all of them where each thread's data lies from its start.
[[gnu::tls_model("initial-exec")]] thread_local volatile bool has_thread_data;

// The allocator's state is the process's, as malloc's is.
constexpr size_t start_bytes = size_t{2} << 20;  // static constructors take 0.4 MB
alignas(4096) char start_memory[start_bytes];
constinit Pool start_pool{.begin = start_memory, .size = start_bytes};
constinit Pool *pools = &start_pool;
constinit std::mutex mutex;                   // of all pools
constinit std::atomic<size_t> blocks_out{0};  // in use, of all pools; read without the mutex

void *allocate(size_t bytes, size_t alignment) {
  const std::lock_guard lock(mutex);
  for (Pool *pool = pools; pool; pool = pool->next) {
    if (void *block = pool->allocate(bytes, alignment)) {
      blocks_out.fetch_add(1, std::memory_order_relaxed);
      return block;
    }
  }
  errno = ENOMEM;
  return nullptr;
}

Pool *pool_of(const void *block) {
  Pool *pool = pools;
  while (pool && !pool->owns(block)) pool = pool->next;
  return pool;
}

void unmap_unused(Pool *pool) {
  if (pool->held || pool->in_use > 0 || pool == &start_pool) return;
  Pool **link = &pools;
  while (*link != pool) link = &(*link)->next;
  *link = pool->next;
  munmap(pool, pool->size + sizeof(Pool));
}

// Whether the block was of a reserve. A block's owner sees blocks_out above 0.
bool free(void *block) {
  if (blocks_out.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex);
  Pool *pool = pool_of(block);
  if (!pool) return false;
  pool->free(block);
  blocks_out.fetch_sub(1, std::memory_order_relaxed);
  unmap_unused(pool);
  return true;
}

// The bytes that a block of a reserve can hold; 0 for one of malloc's.
size_t capacity_of(void *block) {
  if (blocks_out.load(std::memory_order_relaxed) == 0) return 0;
  const std::lock_guard lock(mutex);
  return pool_of(block) ? (static_cast<Header *>(block) - 1)->capacity : 0;
}

}  // namespace

std::optional<Reserve> Reserve::hold(size_t bytes) {
  has_thread_data = true;
  void *memory = mmap(nullptr, bytes + sizeof(Pool), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  Pool *pool = new (memory) Pool{.begin = static_cast<char *>(memory) + sizeof(Pool), .size = bytes, .held = true};
  const std::lock_guard lock(mutex);
  pool->next = pools;
  pools = pool;
  return Reserve(pool);
}

Reserve::~Reserve() {
  if (!pool_) return;
  const std::lock_guard lock(mutex);
  pool_->held = false;
  unmap_unused(pool_);
}

bool Reserve::is_low() const {
  const std::lock_guard lock(mutex);
  return pool_->in_use > pool_->size / 8;
}

bool Reserve::is_spent() const {
  const std::lock_guard lock(mutex);
  return pool_->end_of_used > pool_->size / 8 * 7;
}

}  // namespace kiln::codegen

// What this library's calls of malloc and its like become.
extern "C" {

void *__wrap_malloc(size_t size) {
  void *block = __real_malloc(size);
  return block ? block : kiln::codegen::allocate(size, kiln::codegen::block_alignment);
}

void *__wrap_calloc(size_t count, size_t size) {
  if (void *block = __real_calloc(count, size)) return block;
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void *block = kiln::codegen::allocate(bytes, kiln::codegen::block_alignment);
  return block ? std::memset(block, 0, bytes) : nullptr;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  void *block = __real_aligned_alloc(alignment, size);
  return block ? block : kiln::codegen::allocate(size, std::max(alignment, kiln::codegen::block_alignment));
}

void __wrap_free(void *block) {
  if (!kiln::codegen::free(block)) __real_free(block);
}

void *__wrap_realloc(void *block, size_t size) {
  if (!block) return __wrap_malloc(size);
  size_t held = kiln::codegen::capacity_of(block);
  if (held == 0) {
    void *moved = __real_realloc(block, size);
    if (moved || size == 0) return moved;
    held = malloc_usable_size(block);
  }
  void *moved = __wrap_malloc(size);
  if (!moved) return nullptr;
  std::memcpy(moved, block, std::min(held, size));
  __wrap_free(block);
  return moved;
}
}
