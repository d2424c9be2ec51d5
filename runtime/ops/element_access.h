// How reference kernels read operands and write results that are wide or native, element by element, by their number in
// row-major order. For the .cpp files of this folder alone.
#pragma once
#include <cstring>
#include <type_traits>

#include "jit/base/small_float.h"
#include "runtime/ops/op.h"

namespace kiln::ops {

template <class T>
T element_at_address(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
// A float dtype's element as a double, and one of any other as 64 bits.
inline double load_float(const uint8_t *at, DType dtype) {
  if (dtype == DType::f32) return element_at_address<float>(at);
  if (dtype == DType::f64) return element_at_address<double>(at);
  return decode_float(size_of(dtype) == 1 ? *at : element_at_address<uint16_t>(at), small_format(dtype));
}
inline int64_t load_integer(const uint8_t *at, DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return *at != 0;
    case DType::u8:
      return *at;
    case DType::i8:
      return element_at_address<int8_t>(at);
    case DType::u16:
      return element_at_address<uint16_t>(at);
    case DType::i16:
      return element_at_address<int16_t>(at);
    case DType::u32:
      return element_at_address<uint32_t>(at);
    case DType::i32:
      return element_at_address<int32_t>(at);
    default:
      return element_at_address<int64_t>(at);
  }
}
// Rounds to nearest even; of integers keeps the low bits.
inline void store_float(uint8_t *at, DType dtype, double value) {
  const auto put = [&](auto as) { std::memcpy(at, &as, sizeof as); };
  if (dtype == DType::f64) return put(value);
  if (dtype == DType::f32) return put(static_cast<float>(value));
  const uint16_t bits = encode_float(value, small_format(dtype));
  size_of(dtype) == 1 ? put(static_cast<uint8_t>(bits)) : put(bits);
}
inline void store_integer(uint8_t *at, DType dtype, int64_t value) {
  if (dtype == DType::boolean) value = value != 0;
  std::memcpy(at, &value, size_of(dtype));
}

// T is double for float dtypes, int64_t or uint64_t for the others. Of a tensor of the other kind there is nothing to
// read.
template <class T>
class ReadElements {
 public:
  explicit ReadElements(const RefTensor &x) : dtype_(x.dtype), size_(size_of(x.dtype)) {
    if constexpr (std::is_same_v<T, double>)
      wide_ = x.f.data();
    else
      wide_ = x.i.data();
    if (!x.native) return;
    first_ = x.native->first;
    for (size_t d = 0; d < x.shape.size(); ++d) {
      const int64_t size = x.shape[d], stride = x.native->strides[d];
      if (size == 1) continue;
      if (!dims_.empty() && dims_.back().stride == stride * size)
        dims_.back() = {dims_.back().size * size, stride};
      else
        dims_.push_back({size, stride});
    }
    step_ = dims_.empty() ? 0 : dims_.back().stride;
  }
  T operator[](size_t k) const {
    if (!first_) return static_cast<T>(wide_[k]);
    const uint8_t *at = first_ + offset(static_cast<int64_t>(k)) * size_;
    if constexpr (std::is_same_v<T, double>)
      return load_float(at, dtype_);
    else
      return static_cast<T>(load_integer(at, dtype_));
  }

 private:
  struct Dim {
    int64_t size, stride;
  };
  int64_t offset(int64_t k) const {
    if (dims_.size() < 2) return k * step_;
    int64_t sum = 0;
    for (size_t d = dims_.size(); d-- > 1; k /= dims_[d].size) sum += k % dims_[d].size * dims_[d].stride;
    return sum + k * dims_[0].stride;
  }
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, int64_t>;
  DType dtype_;
  int64_t size_;  // of an element, in bytes
  const Wide *wide_ = nullptr;
  const uint8_t *first_ = nullptr;
  std::vector<Dim> dims_;  // those that are one run of elements are one
  int64_t step_ = 0;
};

// Each element is written once and not read: a native one is rounded when it is written, so sums are to be made
// elsewhere. Of different elements on several threads.
template <class T>
class WriteElements {
 public:
  explicit WriteElements(RefTensor &y) : dtype_(y.dtype), size_(size_of(y.dtype)) {
    if constexpr (std::is_same_v<T, double>)
      wide_ = y.f.data();
    else
      wide_ = y.i.data();
    if (y.native) first_ = y.native->first;  // dense: allocate_native() made it
  }
  void set(size_t k, T value) const {
    if (!first_)
      wide_[k] = static_cast<Wide>(value);
    else if constexpr (std::is_same_v<T, double>)
      store_float(first_ + k * size_, dtype_, value);
    else
      store_integer(first_ + k * size_, dtype_, static_cast<int64_t>(value));
  }

 private:
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, int64_t>;
  DType dtype_;
  size_t size_;
  Wide *wide_ = nullptr;
  uint8_t *first_ = nullptr;
};

// A result of any dtype, from what a function of elements gave.
class WriteAny {
 public:
  explicit WriteAny(RefTensor &y) : is_float_(y.is_float()), f_(y), i_(y) {}
  template <class Value>
  void set(size_t k, Value value) const {
    is_float_ ? f_.set(k, static_cast<double>(value)) : i_.set(k, static_cast<int64_t>(value));
  }

 private:
  bool is_float_;
  WriteElements<double> f_;
  WriteElements<int64_t> i_;
};

}  // namespace kiln::ops
