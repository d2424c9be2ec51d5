// How reference kernels read operands and write results that are wide or native, element by element, by their number in
// row-major order. For the .cpp files of this folder alone.
#pragma once
#include <span>
#include <type_traits>

#include "runtime/ops/op.h"

namespace kiln::ops {

// A float dtype's element as a double, and one of any other as 64 bits.
double load_float(const uint8_t *at, DType dtype);
int64_t load_integer(const uint8_t *at, DType dtype);
// Rounds to nearest even; of integers keeps the low bits.
void store_float(uint8_t *at, DType dtype, double value);
void store_integer(uint8_t *at, DType dtype, int64_t value);

// The elements of a native tensor, which outlives this, by their number.
class NativeReader {
 public:
  explicit NativeReader(const RefTensor &x);
  bool is_native() const { return first_ != nullptr; }
  double float_at(size_t k) const;
  int64_t integer_at(size_t k) const;

 private:
  const uint8_t *at(size_t k) const;
  const uint8_t *first_ = nullptr;
  DType dtype_;
  bool is_one_run_ = true;  // of elements that are `step_` apart
  int64_t step_ = 0;
  std::span<const int64_t> shape_, strides_;
};

// T is double for float dtypes, int64_t or uint64_t for the others. Of a tensor of the other kind there is nothing to
// read.
template <class T>
class ReadElements {
 public:
  explicit ReadElements(const RefTensor &x) : native_(x) {
    if constexpr (std::is_same_v<T, double>)
      wide_ = x.f.data();
    else
      wide_ = x.i.data();
  }
  T operator[](size_t k) const {
    if (!native_.is_native()) return static_cast<T>(wide_[k]);
    if constexpr (std::is_same_v<T, double>)
      return native_.float_at(k);
    else
      return static_cast<T>(native_.integer_at(k));
  }

 private:
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, int64_t>;
  NativeReader native_;
  const Wide *wide_ = nullptr;
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
