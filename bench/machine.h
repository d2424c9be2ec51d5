// What this machine can do, measured: every figure is a part of it, because machines differ.
#pragma once

namespace kiln::bench {

int cores();
// f32 fused multiply-adds, in FLOP/s (two an element), on `threads` threads at the widest vectors.
double fma_peak(int threads);
// Bytes read plus written per second by a copy far above the last cache, on all cores.
double copy_bandwidth();

}  // namespace kiln::bench
