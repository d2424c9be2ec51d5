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
    case DType::f16:
      return decode_float(read<uint16_t>(data.bytes, at), f16_format);
    default:
      return decode_float(read<uint16_t>(data.bytes, at), bf16_format);
  }
}
void write_float(TensorData &data, size_t at, double value) {
  switch (data.dtype) {
    case DType::f64:
      return write<double>(data.bytes, at, value);
    case DType::f32:
      return write<float>(data.bytes, at, value);
    case DType::f16:
      return write<uint16_t>(data.bytes, at, encode_float(value, f16_format));
    default:
      return write<uint16_t>(data.bytes, at, encode_float(value, bf16_format));
  }
}
int64_t read_integer(const TensorData &data, size_t at) {
  switch (data.dtype) {
    case DType::i64:
      return read<int64_t>(data.bytes, at);
    case DType::i32:
      return read<int32_t>(data.bytes, at);
    case DType::i16:
      return read<int16_t>(data.bytes, at);
    case DType::i8:
      return read<int8_t>(data.bytes, at);
    case DType::boolean:
      return data.bytes[at] != 0;
    default:
      return data.bytes[at];
  }
}

}  // namespace

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
