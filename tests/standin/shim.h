// CUDA's words for a C++ compiler, so that emitted source runs as it stands on a CPU: a thread of the host runs one
// block at a time, and whoever launches (grid.h) sets the indices.
#pragma once
#include <math.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static thread_local

struct kiln_dim3 {
  unsigned x, y, z;
};
struct kiln_shim_state {
  kiln_dim3 block_index, thread_index, block_size, grid_size;
  void (*meet)();  // returns when all threads of the block have called it
};
static thread_local kiln_shim_state kiln_shim = {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}, nullptr};
extern "C" __attribute__((visibility("default"))) kiln_shim_state *kiln_shim_address() { return &kiln_shim; }

#define blockIdx kiln_shim.block_index
#define threadIdx kiln_shim.thread_index
#define blockDim kiln_shim.block_size
#define gridDim kiln_shim.grid_size
#define __syncthreads() kiln_shim.meet()

// By Newton's steps on erfc, which keeps all digits near 1.
static inline double erfinv(double x) {
  const double size = fabs(x), logarithm = log1p(-x * x), b = 4.33 + logarithm / 2;
  if (!(size > 1e-8 && size < 1)) return size == 1 ? x / 0.0 : size < 1 ? x * 0.88622692545275801 : NAN;
  double y = sqrt(sqrt(b * b - logarithm / 0.147) - b);
  for (int step = 0; step < 8; ++step) y += (erfc(y) - (1 - size)) * 0.88622692545275801 * exp(y * y);
  return copysign(y, x);
}
static inline double sinpi(double x) { return sin(3.1415926535897931 * x); }
static inline double cospi(double x) { return cos(3.1415926535897931 * x); }
static inline float erfinvf(float x) { return (float)erfinv(x); }
static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
static inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
template <class T>
static inline T atomicCAS(T *address, T expected, T value) {
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
static inline unsigned atomicOr(unsigned *address, unsigned value) {
  return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
