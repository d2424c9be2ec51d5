// The random elements of samples: drawn so that any language repeats them bit for bit (elements.py is the same in
// Python).
//
// A stream is named by a text, "OP/SAMPLE/OPERAND". Its seed is the FNV-1a hash of that text in 64 bits (Fowler, Noll,
// Vo: isthe.com/chongo/tech/comp/fnv), and word k, from 0, is splitmix64's of the state seed + (k + 1) * 2^64 / phi
// (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014; constants as in Vigna's
// prng.di.unimi.it/splitmix64.c). Element k, in row-major order, is word k made
//   a float: the least multiple of 1/8 that is not below `low`, plus word mod n eighths, where n of them lie below
//     `high`; then rounded to the type, which changes nothing in most of them;
//   an integer: int_low + word mod (int_high - int_low), and of types without a sign nothing below 0;
//   a bool: the word's highest bit.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/ops/op.h"
#include "runtime/ops/reference.h"
#include "tests/backend/harness.h"

namespace kiln::testing {

class Stream {
 public:
  explicit Stream(std::string_view name) {
    for (const char c : name) state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  uint64_t next() {
    uint64_t word = state_ += 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325;
};

inline TensorData drawn(DType dtype, std::vector<int64_t> shape, const Sample &sample, std::string_view name) {
  Stream stream(name);
  RefTensor t{dtype, std::move(shape), {}, {}};
  t.allocate();
  const double first = std::ceil(sample.low * 8), count = std::max(std::ceil(sample.high * 8) - first, 1.0);
  for (double &x : t.f) x = (first + static_cast<double>(stream.next() % static_cast<uint64_t>(count))) / 8;
  const int64_t least = dtype_info(dtype).is_signed ? sample.int_low : std::max<int64_t>(sample.int_low, 0);
  const auto range = static_cast<uint64_t>(std::max<int64_t>(sample.int_high - least, 1));
  for (int64_t &x : t.i)
    x = dtype == DType::boolean ? static_cast<int64_t>(stream.next() >> 63)
                                : least + static_cast<int64_t>(stream.next() % range);
  return from_reference(t);
}

// All operands of a sample at_sizes(): what they are given, or random elements of their streams.
inline std::vector<TensorData> operands_of(const Op &op, const Sample &sample) {
  std::vector<TensorData> operands;
  for (size_t k = 0; k < sample.inputs.size(); ++k) {
    const TensorType &type = sample.inputs[k];
    const auto given = sample.given.find(k);
    operands.push_back(given != sample.given.end() ? given->second
                                                   : drawn(type.dtype, shape_at(type.dims, {}), sample,
                                                           str_cat(op.name, "/", sample.name, "/", k)));
  }
  return operands;
}

}  // namespace kiln::testing
