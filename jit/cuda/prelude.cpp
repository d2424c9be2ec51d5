#include "jit/cuda/source.h"

namespace kiln::cuda {

// Device code as text. `kiln_` names are Kiln's; the rest are CUDA's built-ins, which NVRTC knows without a header.
std::string_view prelude() {
  return R"(// Semantics of Kiln's core operations. No header is included.
typedef long long kiln_i64;
typedef unsigned long long kiln_u64;
#define KILN_INLINE static __device__ __forceinline__

KILN_INLINE kiln_i64 kiln_floor_div(kiln_i64 a, kiln_i64 b) {
  if (b == 0) return 0;
  kiln_i64 q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
KILN_INLINE kiln_i64 kiln_floor_mod(kiln_i64 a, kiln_i64 b) { return b == 0 ? 0 : a - kiln_floor_div(a, b) * b; }
template <class T> KILN_INLINE T kiln_min(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }
template <class T> KILN_INLINE T kiln_max(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }

// Of floats: -0 is less than +0.
KILN_INLINE bool kiln_sign(float x) { return __float_as_uint(x) >> 31; }
KILN_INLINE bool kiln_sign(double x) { return __double_as_longlong(x) < 0; }
template <class T> KILN_INLINE T kiln_lesser(T a, T b) { return a != a || a < b || (a == b && kiln_sign(a)) ? a : b; }
template <class T> KILN_INLINE T kiln_greater(T a, T b) { return a != a || a > b || (a == b && !kiln_sign(a)) ? a : b; }
KILN_INLINE float kiln_min(float a, float b) { return b != b ? b : kiln_lesser(a, b); }
KILN_INLINE float kiln_max(float a, float b) { return b != b ? b : kiln_greater(a, b); }
KILN_INLINE double kiln_min(double a, double b) { return b != b ? b : kiln_lesser(a, b); }
KILN_INLINE double kiln_max(double a, double b) { return b != b ? b : kiln_greater(a, b); }

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
// By less than 0 or the width and more: nothing of the number is left but, to the right, its sign.
template <class T> KILN_INLINE T kiln_shift_left(T a, T by) {
  return by < 0 || by >= T(8 * sizeof(T)) ? T(0) : T((unsigned long long)a << by);
}
template <class T> KILN_INLINE T kiln_shift_right(T a, T by) {
  return by < 0 || by >= T(8 * sizeof(T)) ? T(a < 0 ? -1 : 0) : T(a >> by);
}
template <class T> KILN_INLINE T kiln_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? (exponent & 1 ? T(-1) : T(1)) : T(0);
  unsigned long long result = 1, square = base;   // which wrap
  for (; exponent > 0; exponent >>= 1, square *= square) if (exponent & 1) result *= square;
  return T(result);
}
KILN_INLINE float kiln_pow(float a, float b) { return powf(a, b); }
KILN_INLINE double kiln_pow(double a, double b) { return pow(a, b); }

// The recurrence up to 10, then the asymptotic series; below 0 the reflection.
KILN_INLINE double digamma(double x) {
  double sum = 0;
  if (x < 0) {
    const double turn = x - rint(x);
    sum = turn == 0 ? 0.0 / 0.0 : -1 / x - 3.1415926535897931 * (cospi(turn) / sinpi(turn));
    x = -x;
  } else if (x == 0) {
    return -1 / x;
  }
  for (; x < 10; x += 1) sum -= 1 / x;
  const double z = 1 / (x * x);
  return log(x) - 0.5 / x + sum - z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 -
      z * (691.0 / 32760 - z * (1.0 / 12)))))));
}
KILN_INLINE float digammaf(float x) { return (float)digamma((double)x); }

// Float to integer: truncates, saturates, NaN gives 0. `low` and `high` are the integer's limits.
template <class T, class F> KILN_INLINE T kiln_to_int(F x, T low, T high) {
  if (x != x) return 0;
  if (x <= (F)low) return low;
  return x >= (F)high ? high : (T)x;
}
// Small floats are their bits: EXPONENT and MANTISSA of them; FINITE: no infinities, and NaN where all are set.
template <int EXPONENT, int MANTISSA, bool FINITE> KILN_INLINE float kiln_from_small(unsigned x) {
  const unsigned bias = (1u << (EXPONENT - 1)) - 1, sign = 1u << (EXPONENT + MANTISSA), size = x & (sign - 1);
  const unsigned top = (1u << EXPONENT) - 1;
  unsigned bits = (size << (23 - MANTISSA)) + ((127 - bias) << 23);
  if (size < 1u << MANTISSA)   // a denormal, or 0
    bits = __float_as_uint(__uint_as_float(bits + (1u << 23)) - __uint_as_float((128 - bias) << 23));
  else if (FINITE ? size == sign - 1 : size >= top << MANTISSA)
    bits = FINITE ? 0x7fc00000u : bits + ((255 - (top + 127 - bias)) << 23);
  return __uint_as_float(bits | (x & sign ? 1u << 31 : 0u));
}
// Rounded once, halves to even; `most` is what too large numbers become.
template <int EXPONENT, int MANTISSA, bool FINITE> KILN_INLINE unsigned kiln_to_small(float x, unsigned most, unsigned nan) {
  const unsigned bias = (1u << (EXPONENT - 1)) - 1, shift = 23 - MANTISSA;
  const unsigned bits = __float_as_uint(x), size = bits & 0x7fffffffu, magic = (151 - bias - MANTISSA) << 23;
  unsigned result = size < (128 - bias) << 23   // the addition's last place is the smallest denormal's
      ? __float_as_uint(__uint_as_float(size) + __uint_as_float(magic)) - magic
      : (size + ((bias - 127) << 23) + (1u << (shift - 1)) - 1 + (size >> shift & 1)) >> shift;
  if (result > most) result = most;
  if (size > 255u << 23) result = nan;
  return result | bits >> 31 << (EXPONENT + MANTISSA);
}
// Rounded to odd: the last bit says that more followed, so that rounding again is rounding once.
KILN_INLINE float kiln_to_odd(double x) {
  const float rounded = (float)x;
  const double back = rounded;
  if (!(back < x || back > x)) return rounded;
  return __uint_as_float((__float_as_uint(rounded) - (fabs(back) > fabs(x))) | 1u);
}
// A 64-bit integer whose bits beyond a double's are gathered in one.
template <class T> KILN_INLINE T kiln_gathered(T x) {
  const kiln_u64 bits = (kiln_u64)x, size = x < T(0) ? ~bits : bits;
  return size >> 53 && bits & 0x7ff ? T((bits & ~0x7ffull) | 0x800) : x;
}
KILN_INLINE bool kiln_in_range(kiln_i64 index, kiln_i64 extent, unsigned *error) {
  bool inside = index >= 0 && index < extent;
  if (!inside) atomicOr(error, 2u);
  return inside;
}

// What stores combine by. Integers wrap.
struct kiln_add {
  template <class T> KILN_INLINE T of(T a, T b) { return T((kiln_u64)a + (kiln_u64)b); }
  KILN_INLINE float of(float a, float b) { return a + b; }
  KILN_INLINE double of(double a, double b) { return a + b; }
};
struct kiln_mul {
  template <class T> KILN_INLINE T of(T a, T b) { return T((kiln_u64)a * (kiln_u64)b); }
  KILN_INLINE float of(float a, float b) { return a * b; }
  KILN_INLINE double of(double a, double b) { return a * b; }
};
struct kiln_least { template <class T> KILN_INLINE T of(T a, T b) { return kiln_min(a, b); } };
struct kiln_greatest { template <class T> KILN_INLINE T of(T a, T b) { return kiln_max(a, b); } };
struct kiln_and { template <class T> KILN_INLINE T of(T a, T b) { return T(a & b); } };
struct kiln_or { template <class T> KILN_INLINE T of(T a, T b) { return T(a | b); } };
template <class OP, class T> KILN_INLINE void kiln_combine(T *at, T value) { *at = OP::of(*at, value); }
template <unsigned BYTES> struct kiln_word { typedef unsigned type; };
template <> struct kiln_word<8> { typedef unsigned long long type; };
template <class OP, class T> KILN_INLINE void kiln_combine_atomically(T *at, T value) {
  typedef typename kiln_word<sizeof(T)>::type word;
  union { word bits; T value; } seen, next;
  word found = *(volatile word *)at;
  do {
    seen.bits = found;
    next.value = OP::of(seen.value, value);
    found = atomicCAS((word *)at, seen.bits, next.bits);
  } while (found != seen.bits);
}

// The order of sorts and searches: NaN are greater than all numbers.
struct kiln_plain { template <class T> KILN_INLINE T of(T x) { return x; } };
template <int EXPONENT, int MANTISSA, bool FINITE> struct kiln_small {
  KILN_INLINE float of(unsigned x) { return kiln_from_small<EXPONENT, MANTISSA, FINITE>(x); }
};
template <bool DESCENDING, class T> KILN_INLINE bool kiln_precedes(T a, T b) {
  return DESCENDING ? kiln_precedes<false>(b, a) : a == a && (b != b || a < b);
}
template <class KEY, bool DESCENDING, class T> KILN_INLINE bool kiln_before(T a, T b) {
  return kiln_precedes<DESCENDING>(KEY::of(a), KEY::of(b));
}
// A power of two: as many partial results as have a point, `most` at most. And the bits of such a number, reversed.
KILN_INLINE unsigned kiln_partials(kiln_i64 points, unsigned most) {
  unsigned count = 1;
  while (count < most && count < points) count *= 2;
  return count;
}
KILN_INLINE unsigned kiln_reversed(unsigned number, unsigned count) {
  unsigned reversed = 0;
  for (; count > 1; count /= 2, number /= 2) reversed = 2 * reversed + number % 2;
  return reversed;
}

// How many of the row's elements come before the key or, UPPER, do not come after it.
template <class KEY, bool DESCENDING, bool UPPER, class T>
KILN_INLINE kiln_i64 kiln_search(const T *row, kiln_i64 step, kiln_i64 count, T key) {
  kiln_i64 found = 0;
  while (count > 0) {
    const kiln_i64 half = count / 2;
    const T element = row[(found + half) * step];
    if (UPPER ? !kiln_before<KEY, DESCENDING>(key, element) : kiln_before<KEY, DESCENDING>(element, key)) {
      found += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return found;
}
// Where element `at` lies when pairs of runs of `length` are merged: equal elements of the left run come first.
template <class KEY, bool DESCENDING, class T>
KILN_INLINE kiln_i64 kiln_merged(const T *keys, kiln_i64 at, kiln_i64 length, kiln_i64 count) {
  const kiln_i64 begin = at / (2 * length) * (2 * length);
  const kiln_i64 middle = kiln_min(begin + length, count), end = kiln_min(middle + length, count);
  if (at < middle) return at + kiln_search<KEY, DESCENDING, false>(keys + middle, 1, end - middle, keys[at]);
  return begin + (at - middle) + kiln_search<KEY, DESCENDING, true>(keys + begin, 1, middle - begin, keys[at]);
}
)";
}

}  // namespace kiln::cuda
