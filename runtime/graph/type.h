// The type of a value: dtype, symbolic shape, layout, alias.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jit/base/dtype.h"
#include "jit/base/expr.h"
#include "jit/base/status.h"

namespace kiln {

// node id << 32 | output index, as in kiln.h; 0 is none.
struct ValueId {
  uint32_t node = 0, output = 0;
  uint64_t packed() const { return uint64_t{node} << 32 | output; }
  static ValueId unpack(uint64_t v) { return {static_cast<uint32_t>(v >> 32), static_cast<uint32_t>(v)}; }
  explicit operator bool() const { return node != 0; }
  auto operator<=>(const ValueId &) const = default;
};

struct TensorType {
  enum class Layout : uint8_t { exact, free };  // exact: strides below. free: the planner's choice
  DType dtype = DType::f32;
  Shape dims;
  Layout layout = Layout::free;
  Shape strides;        // exact only; elements
  uint32_t device = 0;  // slot of the device; 0: the executable's
  ValueId alias_of;     // the value whose storage this is a view of, or none

  size_t rank() const { return dims.size(); }
  bool same_value_type(const TensorType &o) const { return dtype == o.dtype && dims == o.dims && device == o.device; }
  std::string text() const;  // "f32[batch, 3]"
};
TensorType make_type(DType dtype, Shape dims);   // free layout
TensorType exact_type(DType dtype, Shape dims);  // exact, row-major

// How a call is given an output, whose dtype and dims are its value's.
struct OutputLayout {
  enum class Kind : uint8_t {
    row_major,
    strided,  // exactly `strides`
    any,      // of each array its own
    view,     // it is not made: where its value, a view of an input, lies
  };
  Kind kind = Kind::row_major;
  Shape strides = {};  // strided only; elements
  bool operator==(const OutputLayout &) const = default;
};

inline constexpr size_t max_rank = 64;
// Dims that are integers are not negative and their bytes fit 63 bits; strides are as many as dims; a dtype is there.
Status check_type(const TensorType &type);
// Of an array that is written: no two elements may be one. Said of strides alone, that each is further than all that
// smaller ones reach. The message does not say whose they are.
Status check_written(std::span<const int64_t> dims, std::span<const int64_t> strides);
// The same where all are integers; else ok.
Status check_written(const Shape &dims, const Shape &strides);

}  // namespace kiln
