#include "jit/base/stack.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

namespace kiln {
namespace {

// Twice what the deepest graph with the deepest expressions takes (measured: 230 KiB).
constexpr uintptr_t enough = uintptr_t{512} << 10;

}  // namespace

bool is_stack_short() {
  if (gettid() == getpid()) {  // the process's first stack: what the C library tells of it is slow to find out
    rlimit limit{};
    return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < enough;
  }
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void *lowest = nullptr;
  size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - reinterpret_cast<uintptr_t>(lowest);
  return is_known && here < size && here < enough;  // elsewhere: a stack of the host's making, of unknown size
}

}  // namespace kiln
