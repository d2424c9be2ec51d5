#include "arrays.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

#include "elements.h"

namespace kiln::cli {
namespace {

struct DType {
  std::string name;
  DLDataType type;
};

// All that the library knows.
std::vector<DType> dtypes() {
  std::vector<DType> result;
  for (kiln_dtype number = 1;; ++number) {
    kiln_text name = {};
    uint32_t packed = 0;
    if (kiln_error *unknown = kiln_dtype_info(number, &name, nullptr, &packed)) {
      kiln_error_destroy(unknown);
      return result;
    }
    result.push_back(
        {std::string(view(name)), DLDataType{static_cast<uint8_t>(packed), static_cast<uint8_t>(packed >> 8),
                                             static_cast<uint16_t>(packed >> 16)}});
  }
}

DLDataType type_named(const std::string &dtype, std::string_view of) {
  const std::vector<DType> known = dtypes();
  const auto found = std::find_if(known.begin(), known.end(), [&](const DType &d) { return d.name == dtype; });
  if (found == known.end()) throw Failure("'" + std::string(of) + "' has the unknown dtype " + dtype);
  return found->type;
}

int64_t count_of(const DLTensor &tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) count *= tensor.shape[d];
  return count;
}

// Of element `i`, in row-major order, from the first one; in bytes.
int64_t offset_of(const DLTensor &tensor, int64_t i) {
  int64_t offset = 0;
  for (int32_t d = tensor.ndim; d-- > 0; i /= tensor.shape[d]) offset += i % tensor.shape[d] * tensor.strides[d];
  return offset * (tensor.dtype.bits / 8);
}

// "[4, 10]"
std::string sizes_of(const DLTensor &tensor) {
  std::string text = "[";
  for (int32_t d = 0; d < tensor.ndim; ++d) text += (d ? ", " : "") + std::to_string(tensor.shape[d]);
  return text + "]";
}

// splitmix64
uint64_t next(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t mix(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

Array::Array(DLDataType type, std::vector<int64_t> shape, std::string_view name, std::vector<int64_t> strides)
    : shape_(std::move(shape)), strides_(std::move(strides)) {
  int64_t bytes = type.bits / 8, below = 0;  // below: of them before the first element
  bool countable = true;
  for (const int64_t dim : shape_) countable = !__builtin_mul_overflow(bytes, dim, &bytes) && countable;
  if (!strides_.empty() && bytes > 0) {
    bytes = type.bits / 8;
    for (size_t d = 0; d < shape_.size(); ++d) {
      int64_t reach = 0;
      countable = countable && !__builtin_mul_overflow(shape_[d] - 1, strides_[d], &reach) &&
                  !__builtin_mul_overflow(reach, int64_t{type.bits / 8}, &reach) && reach != INT64_MIN &&
                  !__builtin_add_overflow(bytes, std::abs(reach), &bytes);
      if (countable) below -= std::min<int64_t>(reach, 0);
    }
  }
  tensor_.device = {kDLCPU, 0};
  tensor_.ndim = static_cast<int32_t>(shape_.size());
  tensor_.dtype = type;
  tensor_.shape = shape_.data();
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  bytes_.reset(countable ? new (std::align_val_t(64), std::nothrow) std::byte[size] : nullptr);
  if (!bytes_) throw Failure("no memory for '" + std::string(name) + "', whose sizes are " + sizes_of(tensor_));
  tensor_.data = bytes_.get() + below;
  if (!strides_.empty()) tensor_.strides = strides_.data();
}

Array Array::random(const std::string &dtype, std::vector<int64_t> shape, uint64_t seed, std::string_view name,
                    bool parameter) {
  const DLDataType type = type_named(dtype, name);
  Array array(type, std::move(shape), name);
  const bool real = is_float(type);
  const bool vector = parameter && array.shape_.size() < 2;
  const double columns = parameter && !vector ? static_cast<double>(std::max<int64_t>(array.shape_.back(), 1)) : 1;
  const double width = vector ? 1 : parameter ? std::sqrt(12 / columns) : 2;
  const double centre = vector ? 1 : 0;
  const size_t element = type.bits / 8;
  uint64_t state = mix(seed, name);
  std::byte *at = array.bytes_.get();
  for (int64_t i = 0, count = count_of(array.tensor_); i < count; ++i, at += element) {
    const uint64_t bits = next(state);
    if (real) {
      store_element(type, at, centre + width * (static_cast<double>(bits >> 11) * 0x1p-53 - 0.5));
    } else {
      std::memset(at, 0, element);
      *at = static_cast<std::byte>(bits & 1);
    }
  }
  return array;
}

Array Array::within(const Range &range, const std::string &dtype, std::vector<int64_t> shape, std::string_view stream) {
  const DLDataType type = type_named(dtype, stream);
  Array array(type, std::move(shape), stream);
  const bool is_bool = type.code == kDLBool;
  const int64_t low = is_bool ? 0 : range.int_low;
  const auto many = static_cast<uint64_t>(is_bool ? 2 : std::max<int64_t>(range.int_high - range.int_low, 1));
  uint64_t state = mix(0, stream);
  std::byte *at = array.bytes_.get();
  for (int64_t i = 0, count = count_of(array.tensor_); i < count; ++i, at += type.bits / 8) {
    const uint64_t bits = next(state);
    if (is_float(type)) {
      store_element(type, at, range.low + (range.high - range.low) * (static_cast<double>(bits >> 11) * 0x1p-53));
    } else {
      const int64_t value = low + static_cast<int64_t>(bits % many);
      std::memcpy(at, &value, type.bits / 8);
    }
  }
  return array;
}

Array Array::copy_of(const DLTensor &tensor, std::string_view name) {
  Array array(tensor.dtype, std::vector<int64_t>(tensor.shape, tensor.shape + tensor.ndim), name);
  const auto *from = static_cast<const std::byte *>(tensor.data) + tensor.byte_offset;
  std::byte *to = array.bytes_.get();
  if (!tensor.strides) {
    std::memcpy(to, from, bytes_of(tensor));
    return array;
  }
  const size_t element = tensor.dtype.bits / 8;
  for (int64_t i = 0, count = count_of(tensor); i < count; ++i, to += element)
    std::memcpy(to, from + offset_of(tensor, i), element);
  return array;
}

Array Array::laid_out(const DLTensor &tensor, std::vector<int64_t> strides, std::string_view name, bool equal) {
  const Array dense = copy_of(tensor, name);
  Array array(tensor.dtype, dense.shape_, name, std::move(strides));
  const size_t element = tensor.dtype.bits / 8;
  const auto each = [&](auto visit) {
    auto *to = static_cast<std::byte *>(array.tensor_.data);
    for (int64_t i = 0, count = count_of(tensor); i < count; ++i)
      visit(to + offset_of(array.tensor_, i), dense.bytes_.get() + static_cast<size_t>(i) * element);
  };
  each([&](std::byte *to, const std::byte *from) { std::memcpy(to, from, element); });
  each([&](const std::byte *to, const std::byte *from) {
    if (equal && std::memcmp(to, from, element) != 0)
      throw Failure("'" + std::string(name) + "': elements differ that its strides place on each other");
  });
  return array;
}

uint64_t bytes_of(const DLTensor &tensor) { return static_cast<uint64_t>(count_of(tensor)) * (tensor.dtype.bits / 8); }

std::string summary_of(const DLTensor &tensor) {
  std::string text = sizes_of(tensor);
  const int64_t count = count_of(tensor), element = tensor.dtype.bits / 8;
  double least = INFINITY, most = -INFINITY, sum = 0, value = 0;
  int64_t nans = 0;
  for (int64_t i = 0; i < count; ++i) {
    value = load_element(tensor.dtype, static_cast<const std::byte *>(tensor.data) + tensor.byte_offset + i * element);
    if (std::isnan(value)) {
      ++nans;
      continue;
    }
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  if (count == nans) return text + (count ? "  all nan" : "  empty");
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, "  min %.6g  max %.6g  mean %.6g", least, most,
                sum / static_cast<double>(count - nans));
  text += numbers;
  if (nans) text += "  nan " + std::to_string(nans);
  return text;
}

}  // namespace kiln::cli
