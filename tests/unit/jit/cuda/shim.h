// CUDA's words for a C++ compiler: one block of one thread, so that emitted source runs as it stands on a CPU.
#pragma once
#include <math.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __syncthreads() ((void)0)
struct kiln_dim3 {
  unsigned x, y, z;
};
static const kiln_dim3 blockIdx = {0, 0, 0}, threadIdx = {0, 0, 0}, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};
static inline unsigned atomicOr(unsigned *address, unsigned value) {
  unsigned old = *address;
  *address |= value;
  return old;
}
