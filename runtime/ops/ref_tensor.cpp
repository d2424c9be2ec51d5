// The storage of reference tensors: bytes of any dtype to and from double and int64_t.
#include <cstring>

#include "jit/base/small_float.h"
#include "runtime/ops/family.h"
#include "runtime/ops/reference.h"

namespace kiln {

int64_t RefTensor::size() const { return ops::count_of(shape); }

void RefTensor::allocate() {
  const auto count = static_cast<size_t>(size());
  f.assign(is_float() ? count : 0, 0.0);
  i.assign(is_float() ? 0 : count, 0);
}

namespace {

template <class T>
T read(const Bytes &bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at * sizeof value, sizeof value);
  return value;
}
template <class T, class From>
void write(Bytes &bytes, size_t at, From from) {
  const T value = static_cast<T>(from);
  std::memcpy(bytes.data() + at * sizeof value, &value, sizeof value);
}

double read_float(const TensorData &data, size_t at) {
  switch (data.dtype) {
    case DType::f64:
      return read<double>(data.bytes, at);
    case DType::f32:
      return read<float>(data.bytes, at);
    default:
      return decode_float(size_of(data.dtype) == 1 ? data.bytes[at] : read<uint16_t>(data.bytes, at),
                          small_format(data.dtype));
  }
}
void write_float(TensorData &data, size_t at, double value) {
  switch (data.dtype) {
    case DType::f64:
      return write<double>(data.bytes, at, value);
    case DType::f32:
      return write<float>(data.bytes, at, value);
    default:
      const uint16_t bits = encode_float(value, small_format(data.dtype));
      return size_of(data.dtype) == 1 ? write<uint8_t>(data.bytes, at, bits) : write<uint16_t>(data.bytes, at, bits);
  }
}

// The low bytes of a 64-bit integer, as an integer of that dtype.
int64_t fitted(int64_t value, DType dtype) {
  if (dtype == DType::boolean) return value != 0;
  const uint32_t unused = 64 - 8 * size_of(dtype);
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  return dtype_info(dtype).is_signed ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
}

int64_t read_integer(const TensorData &data, size_t at) {
  int64_t value = 0;
  std::memcpy(&value, data.bytes.data() + at * size_of(data.dtype), size_of(data.dtype));
  return fitted(value, data.dtype);
}

}  // namespace

void RefTensor::fit() {
  if (is_small_float(dtype))
    for (double &value : f) value = decode_float(encode_float(value, small_format(dtype)), small_format(dtype));
  if (size_of(dtype) < 8)
    for (int64_t &value : i) value = fitted(value, dtype);
}

RefTensor to_reference(const TensorData &data) {
  RefTensor t{data.dtype, data.shape, {}, {}};
  t.allocate();
  for (size_t k = 0; k < t.f.size(); ++k) t.f[k] = read_float(data, k);
  for (size_t k = 0; k < t.i.size(); ++k) t.i[k] = read_integer(data, k);
  return t;
}

TensorData from_reference(const RefTensor &tensor) {
  TensorData data{tensor.dtype, tensor.shape, Bytes(static_cast<size_t>(tensor.size()) * size_of(tensor.dtype))};
  const uint32_t size = size_of(tensor.dtype);
  for (size_t k = 0; k < tensor.f.size(); ++k) write_float(data, k, tensor.f[k]);
  for (size_t k = 0; k < tensor.i.size(); ++k)  // two's complement: the low bytes are the narrower integer
    std::memcpy(data.bytes.data() + k * size, &tensor.i[k], size);
  return data;
}

}  // namespace kiln
