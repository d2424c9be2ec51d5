#include "runtime/ops/element_access.h"

#include <cstring>

#include "jit/base/small_float.h"

namespace kiln::ops {
namespace {

template <class T>
T element_at(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

double load_float(const uint8_t *at, DType dtype) {
  if (dtype == DType::f32) return element_at<float>(at);
  if (dtype == DType::f64) return element_at<double>(at);
  return decode_float(size_of(dtype) == 1 ? *at : element_at<uint16_t>(at), small_format(dtype));
}

int64_t load_integer(const uint8_t *at, DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return *at != 0;
    case DType::u8:
      return *at;
    case DType::i8:
      return element_at<int8_t>(at);
    case DType::u16:
      return element_at<uint16_t>(at);
    case DType::i16:
      return element_at<int16_t>(at);
    case DType::u32:
      return element_at<uint32_t>(at);
    case DType::i32:
      return element_at<int32_t>(at);
    default:
      return element_at<int64_t>(at);
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

ElementPlaces::ElementPlaces(const RefTensor &x) : size_(size_of(x.dtype)) {
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

int64_t ElementPlaces::strided(int64_t k) const {
  int64_t sum = 0;
  for (size_t d = dims_.size(); d-- > 1; k /= dims_[d].size) sum += k % dims_[d].size * dims_[d].stride;
  return sum + k * dims_[0].stride;
}

}  // namespace kiln::ops
