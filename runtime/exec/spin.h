// Waiting by polling, for as long as it may be cheaper than to sleep.
#pragma once
#include <chrono>

namespace kiln {

// How long a thread polls before it sleeps. Waking a sleeper costs about 30 us, so that polling for as long as that at
// most doubles the price of the worst case, and the calls of a running model follow each other much faster.
constexpr auto spin_time = std::chrono::microseconds(40);

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Polls `done` for up to spin_time. The clock is read once in 64 polls.
template <class Condition>
bool spin_until(Condition done) {
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace kiln
