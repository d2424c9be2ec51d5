#include "jit/cuda/source.h"

namespace kiln::cuda {

// Device code as text. `kiln_` names are Kiln's; the rest are CUDA's built-ins, which NVRTC knows without a header.
std::string_view prelude() {
  return R"(// Semantics of Kiln's core operations. No header is included.
typedef long long kiln_i64;
#define KILN_INLINE static __device__ __forceinline__

KILN_INLINE kiln_i64 kiln_floor_div(kiln_i64 a, kiln_i64 b) {
  if (b == 0) return 0;
  kiln_i64 q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
KILN_INLINE kiln_i64 kiln_floor_mod(kiln_i64 a, kiln_i64 b) { return b == 0 ? 0 : a - kiln_floor_div(a, b) * b; }
template <class T> KILN_INLINE T kiln_min(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }
template <class T> KILN_INLINE T kiln_max(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }

// A truncated division's remainder as that of a division rounded down.
template <class T> KILN_INLINE T kiln_with_sign(T r, T b) { return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r; }

// Integer division: by zero it yields 0 and sets the error word; the smallest number by -1 wraps.
template <class T> KILN_INLINE T kiln_div(T a, T b, unsigned *error) {
  if (b == 0) { atomicOr(error, 1u); return 0; }
  return b == T(-1) && T(-1) < T(0) ? T(0ull - (unsigned long long)a) : T(a / b);
}
template <class T> KILN_INLINE T kiln_rem(T a, T b, unsigned *error) {
  if (b == 0) { atomicOr(error, 1u); return 0; }
  if (b == T(-1) && T(-1) < T(0)) return 0;
  return kiln_with_sign(T(a % b), b);
}
KILN_INLINE float kiln_div(float a, float b, unsigned *) { return a / b; }
KILN_INLINE double kiln_div(double a, double b, unsigned *) { return a / b; }
KILN_INLINE float kiln_rem(float a, float b, unsigned *) { return kiln_with_sign(fmodf(a, b), b); }
KILN_INLINE double kiln_rem(double a, double b, unsigned *) { return kiln_with_sign(fmod(a, b), b); }
template <class T> KILN_INLINE T kiln_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? (exponent & 1 ? T(-1) : T(1)) : T(0);
  unsigned long long result = 1, square = base;   // which wrap
  for (; exponent > 0; exponent >>= 1, square *= square) if (exponent & 1) result *= square;
  return T(result);
}
KILN_INLINE float kiln_pow(float a, float b) { return powf(a, b); }
KILN_INLINE double kiln_pow(double a, double b) { return pow(a, b); }

// Float to integer: truncates, saturates, NaN gives 0. `low` and `high` are the integer's limits.
template <class T, class F> KILN_INLINE T kiln_to_int(F x, T low, T high) {
  if (x != x) return 0;
  if (x <= (F)low) return low;
  return x >= (F)high ? high : (T)x;
}
KILN_INLINE bool kiln_in_range(kiln_i64 index, kiln_i64 extent, unsigned *error) {
  bool inside = index >= 0 && index < extent;
  if (!inside) atomicOr(error, 2u);
  return inside;
}
)";
}

}  // namespace kiln::cuda
