// The storage of reference tensors: bytes of any dtype to and from double and int64_t.
#include "jit/base/small_float.h"
#include "runtime/ops/element_access.h"
#include "runtime/ops/family.h"
#include "runtime/ops/reference.h"

namespace kiln {

int64_t RefTensor::size() const { return ops::count_of(shape); }

void RefTensor::allocate() {
  if (dtype == DType::token) return allocate_native();
  const auto count = static_cast<size_t>(size());
  f.assign(is_float() ? count : 0, 0.0);
  i.assign(is_float() ? 0 : count, 0);
}

void RefTensor::allocate_native() {
  auto bytes = std::make_shared<Bytes>(static_cast<size_t>(size()) * size_of(dtype));
  uint8_t *first = bytes->data();
  native = {first, ops::dense_strides(shape), std::move(bytes)};
}

namespace {

// The low bytes of a 64-bit integer, as an integer of that dtype.
int64_t fitted(int64_t value, DType dtype) {
  if (dtype == DType::boolean) return value != 0;
  const uint32_t unused = 64 - 8 * size_of(dtype);
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  return dtype_info(dtype).is_signed ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
}

}  // namespace

void RefTensor::fit() {
  if (is_small_float(dtype))
    for (double &value : f) value = rounded_to(value, dtype);
  if (size_of(dtype) < 8)
    for (int64_t &value : i) value = fitted(value, dtype);
}

RefTensor view_of(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, const void *first) {
  RefTensor t{dtype, std::move(shape), {}, {}};  // an operand, which is only read
  t.native = {static_cast<uint8_t *>(const_cast<void *>(first)), std::move(strides), nullptr};
  return t;
}

RefTensor widened(const RefTensor &tensor) {
  if (!tensor.native) return tensor;
  RefTensor wide{tensor.dtype, tensor.shape, {}, {}};
  wide.allocate();
  const ops::ReadElements<double> floats(tensor);
  const ops::ReadElements<int64_t> integers(tensor);
  for (size_t k = 0; k < wide.f.size(); ++k) wide.f[k] = floats[k];
  for (size_t k = 0; k < wide.i.size(); ++k) wide.i[k] = integers[k];
  return wide;
}

RefTensor narrowed(const RefTensor &tensor) {
  if (tensor.dtype == DType::token) return tensor;
  RefTensor native{tensor.dtype, tensor.shape, {}, {}};
  native.allocate_native();
  ops::dispatch(tensor, [&](auto zero) {
    const ops::ReadElements<decltype(zero)> in(tensor);
    const ops::WriteElements<decltype(zero)> out(native);
    for (size_t k = 0; k < static_cast<size_t>(tensor.size()); ++k) out.set(k, in[k]);
  });
  return native;
}

RefTensor to_reference(const TensorData &data) {
  return widened(view_of(data.dtype, data.shape, ops::dense_strides(data.shape), data.bytes.data()));
}

TensorData from_reference(const RefTensor &tensor) {
  RefTensor native = narrowed(tensor);
  return {tensor.dtype, tensor.shape, std::move(*native.native->owner)};
}

}  // namespace kiln
