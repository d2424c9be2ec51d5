#include "runtime/ops/element_access.h"

#include <cstring>
#include <optional>

#include "jit/base/small_float.h"

namespace kiln::ops {
namespace {

template <class T>
T loaded(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

double load_float(const uint8_t *at, DType dtype) {
  if (dtype == DType::f32) return loaded<float>(at);
  if (dtype == DType::f64) return loaded<double>(at);
  return decode_float(size_of(dtype) == 1 ? *at : loaded<uint16_t>(at), small_format(dtype));
}

int64_t load_integer(const uint8_t *at, DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return *at != 0;
    case DType::u8:
      return *at;
    case DType::i8:
      return loaded<int8_t>(at);
    case DType::u16:
      return loaded<uint16_t>(at);
    case DType::i16:
      return loaded<int16_t>(at);
    case DType::u32:
      return loaded<uint32_t>(at);
    case DType::i32:
      return loaded<int32_t>(at);
    default:
      return loaded<int64_t>(at);
  }
}

void store_float(uint8_t *at, DType dtype, double value) {
  const auto put = [&](auto as) { std::memcpy(at, &as, sizeof as); };
  if (dtype == DType::f64) return put(value);
  if (dtype == DType::f32) return put(static_cast<float>(value));
  const uint16_t bits = encode_float(value, small_format(dtype));
  size_of(dtype) == 1 ? put(static_cast<uint8_t>(bits)) : put(bits);
}

void store_integer(uint8_t *at, DType dtype, int64_t value) {
  if (dtype == DType::boolean) value = value != 0;
  std::memcpy(at, &value, size_of(dtype));
}

NativeReader::NativeReader(const RefTensor &x) : dtype_(x.dtype) {
  if (!x.native) return;
  first_ = x.native->first;
  shape_ = x.shape;
  strides_ = x.native->strides;
  std::optional<int64_t> next;  // the stride that goes on with the dims behind
  for (size_t d = shape_.size(); d-- > 0;) {
    if (shape_[d] == 1) continue;
    if (!next)
      step_ = strides_[d];
    else if (strides_[d] != *next)
      is_one_run_ = false;
    next = strides_[d] * shape_[d];
  }
}

const uint8_t *NativeReader::at(size_t k) const {
  auto rest = static_cast<int64_t>(k);
  int64_t offset = 0;
  if (is_one_run_) {
    offset = rest * step_;
  } else {
    for (size_t d = shape_.size(); d-- > 0; rest /= shape_[d]) offset += rest % shape_[d] * strides_[d];
  }
  return first_ + offset * size_of(dtype_);
}

double NativeReader::float_at(size_t k) const { return load_float(at(k), dtype_); }
int64_t NativeReader::integer_at(size_t k) const { return load_integer(at(k), dtype_); }

}  // namespace kiln::ops
