#include "abi/src/kept.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

namespace kiln::abi {

namespace {

// A ring, without a lock: a fork may come at any time. Not destroyed at exit, where handles may still be freed.
std::array<std::atomic<void *>, Kept::count> freed;
std::atomic<size_t> next;

}  // namespace

void *Kept::operator new(size_t wanted) { return ::operator new(std::max(wanted, bytes)); }

void Kept::operator delete(void *at) noexcept {
  ::operator delete(freed[next.fetch_add(1, std::memory_order_relaxed) % count].exchange(at));
}

}  // namespace kiln::abi
