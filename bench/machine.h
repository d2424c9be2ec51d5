// What this machine can do, measured: most figures are a part of it, because machines differ.
#pragma once
#include <functional>

namespace kiln::bench {

int cores();

// Work at a rate that nothing on this machine exceeds.
struct Roof {
  double amount = 0;  // that one run does
  std::function<void()> run;
};
// f32 fused multiply-adds (two FLOP an element) on `threads` threads at the widest vectors.
Roof fma_roof(int threads);
// A copy far above the last cache, on all cores: bytes read plus written.
Roof copy_roof();
// Reading far above the last cache, on all cores, each in several places at once: bytes read.
Roof read_roof();

// Per second, the fastest of some runs.
double rate_of(const Roof &roof);
// What part of the roof's rate `work` reaches when one run does `amount` of it: the fastest of `rounds` runs of each,
// taken in turn, so that both meet the same machine.
double part_of(const Roof &roof, int rounds, double amount, const std::function<void()> &work);

}  // namespace kiln::bench
