// Memory of handles that hosts destroy: what is freed stays readable until as many have been freed since, so that a use
// after that finds the magic word wiped, and is refused, instead of memory that is another's. (passing.h: of those that
// live for one callback.)
#pragma once
#include <cstddef>

namespace kiln::abi {

// A handle derives from it.
struct Kept {
  static constexpr size_t count = 1024;  // of those that were freed, of all kinds together
  static constexpr size_t bytes = 288;   // of each at least: what is kept does not grow once there are as many

  static void *operator new(size_t bytes);
  static void *operator new(size_t, void *at) noexcept { return at; }  // inside what is kept, or passing
  static void operator delete(void *at) noexcept;
};

}  // namespace kiln::abi
