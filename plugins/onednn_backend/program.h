// What a region becomes: steps over slots, which hold its values. Layouts are not in it: oneDNN picks them by the
// machine and by sizes, when a program is loaded, bound and run.
#pragma once
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/plugin.h"

namespace onednn {

using Dims = std::vector<int64_t>;
using Algorithm = dnnl::algorithm;

// What ends a callback: an error of Kiln's, which `guarded` hands to it.
struct Failure : std::runtime_error {
  Failure(uint32_t kind, const std::string &text) : std::runtime_error(text), code(kind) {}
  uint32_t code;
};

enum class Kind : uint32_t { product, convolution, eltwise, binary, softmax, pooling, norm, reshape, copy };
constexpr uint32_t kind_count = 9;

constexpr uint32_t no_slot = ~0u;
constexpr size_t most_rank = 6;
constexpr int64_t most_window = 4096;  // of strides, gaps and paddings: at 2^30 oneDNN divides by 0

// Applied to each element of a step's result before it is stored: a function of it, or of it and another slot's
// element.
struct Post {
  bool is_binary = false;
  Algorithm algorithm = Algorithm::undef;
  float alpha = 0, beta = 0;   // of a function
  uint32_t operand = no_slot;  // of a binary one: it is of the result's shape, or broadcasts to it
};

// Operands by kind; what may be left out is no_slot:
//   product      a, b, bias           by flags transpose_a, transpose_b
//   convolution  x, weight, bias, and of a batch norm that follows: scale, shift, mean, variance
//   eltwise, softmax, pooling, reshape, copy: x
//   binary       a, b                 b may broadcast to a
//   norm         x, scale, shift, mean, variance
struct Step {
  Kind kind = Kind::copy;
  std::vector<uint32_t> operands;
  uint32_t result = no_slot;
  Algorithm algorithm = Algorithm::undef;  // of eltwise, binary and pooling
  float alpha = 0, beta = 0;               // of eltwise; of norm, and of the norm in a convolution, alpha is epsilon
  bool transpose_a = false, transpose_b = false;
  int64_t axis = 0;                                        // of softmax
  Dims kernel, strides, padding_low, padding_high, steps;  // of a window, along each dim of space; steps: its dilation
  int64_t groups = 1;
  // Of a convolution: what is beyond the edge is multiplied as zeros are, which tells where weights are not finite.
  bool is_padding_zero = false;
  Dims shape;    // of reshape: one may be -1
  Dims nominal;  // of the first operand: as it is likely to be, for what is prepared before its sizes are known
  std::vector<Post> posts;
};

struct Slot {
  kiln_dtype dtype = KILN_F32;
  uint32_t rank = 0;
  bool is_constant = false;
  bool is_bound = false;             // a parameter
  Dims shape;                        // of a constant and of a parameter
  std::vector<unsigned char> bytes;  // of a constant
};

// Slots are, in this order: inputs, parameters, outputs (the arrays of a run), then all others.
struct Program {
  uint32_t inputs = 0, parameters = 0, outputs = 0;
  std::vector<Slot> slots;
  std::vector<Step> steps;
  uint32_t arrays() const { return inputs + parameters + outputs; }
  bool is_output(uint32_t slot) const { return slot >= inputs + parameters && slot < arrays(); }
  bool is_fixed(uint32_t slot) const { return slots[slot].is_constant || slots[slot].is_bound; }
};

// The program's bytes, and back. These may come from a file that somebody changed: what `read` gives has slots, kinds
// and algorithms that exist, every operand is made before it is used, and every output is made once.
std::vector<unsigned char> write(const Program &program);
Program read(const void *bytes, uint64_t size);

// Sizes that oneDNN is asked about without an array of them: it counts in 32 bits, and trusts in what it is given.
inline bool is_moderate(const Dims &dims) {
  int64_t count = 1;
  for (const int64_t size : dims) {
    if (size < 1 || size > (int64_t{1} << 26)) return false;
    count *= size;
    if (count > (int64_t{1} << 26)) return false;
  }
  return true;
}

inline dnnl::memory::data_type type_of(kiln_dtype dtype) {
  return dtype == KILN_BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}
inline size_t size_of(kiln_dtype dtype) { return dtype == KILN_BF16 ? 2 : 4; }

}  // namespace onednn
