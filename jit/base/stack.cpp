#include "jit/base/stack.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include <cstdint>

namespace kiln {
namespace {

// Twice what the deepest graph with the deepest expressions takes (measured: 230 KiB).
constexpr uintptr_t enough = uintptr_t{512} << 10;
// Below the end of the first stack, whatever the limit on stacks, no other is: the system keeps 128 MiB free there.
constexpr uintptr_t room_of_first = uintptr_t{64} << 20;

}  // namespace

bool is_stack_short() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  // The process's first stack, at whose end the system put the program's name. What the C library tells of it is slow
  // to find out. It is not told by the thread's number: in a forked child the only thread has whichever stack forked.
  const uintptr_t used = getauxval(AT_EXECFN) - here;
  if (used < room_of_first) {
    rlimit limit{};
    return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < used + enough;
  }
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void *lowest = nullptr;
  size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  const uintptr_t left = here - reinterpret_cast<uintptr_t>(lowest);
  return is_known && left < size && left < enough;  // elsewhere: a stack of the host's making, of unknown size
}

}  // namespace kiln
