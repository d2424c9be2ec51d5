#include "compare.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "elements.h"

namespace kiln::cli {
namespace {

double tolerance_of(DLDataType type) {
  if (!is_float(type)) return 0;
  return std::ldexp(1, type.bits == 64 ? -40 : type.bits == 32 ? -12 : type.bits == 16 ? -5 : -1);
}

double element_at(const DLTensor &tensor, const std::vector<int64_t> &index) {
  int64_t offset = 0, row_major = 1;
  for (int32_t d = tensor.ndim - 1; d >= 0; --d) {
    offset += index[static_cast<size_t>(d)] * (tensor.strides ? tensor.strides[d] : row_major);
    row_major *= tensor.shape[d];
  }
  const auto *data = static_cast<const std::byte *>(tensor.data) + tensor.byte_offset;
  return load_element(tensor.dtype, data + offset * (tensor.dtype.bits / 8));
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double apart = std::abs(a - b);
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

std::string text_of(const std::vector<int64_t> &index) {
  std::string text;
  for (int64_t i : index) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return "[" + text + "]";
}

// The next index in row-major order; false after the last.
bool advance(const DLTensor &tensor, std::vector<int64_t> &index) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < tensor.shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

}  // namespace

Difference difference_of(const DLTensor &a, const DLTensor &b) {
  Difference found;
  std::vector<int64_t> index(static_cast<size_t>(a.ndim));
  for (int32_t d = 0; d < a.ndim; ++d)
    if (a.shape[d] == 0) return found;
  do {
    const double expected = element_at(b, index), apart = distance(element_at(a, index), expected);
    const double relative = std::isfinite(expected) ? apart / std::max(std::abs(expected), 1.0) : apart;
    found.absolute = std::max(found.absolute, apart);
    if (!(apart > 0) || relative <= found.relative) continue;
    found.relative = relative;
    found.where = text_of(index);
  } while (advance(a, index));
  found.is_beyond = found.relative > tolerance_of(a.dtype);
  return found;
}

}  // namespace kiln::cli
