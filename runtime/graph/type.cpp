#include "runtime/graph/type.h"

#include <algorithm>

namespace kiln {

std::string TensorType::text() const { return str_cat(name_of(dtype), text_of(dims)); }

TensorType make_type(DType dtype, Shape dims) {
  TensorType type;
  type.dtype = dtype;
  type.dims = std::move(dims);
  return type;
}

TensorType exact_type(DType dtype, Shape dims) {
  TensorType type = make_type(dtype, std::move(dims));
  type.layout = TensorType::Layout::exact;
  type.strides = row_major_strides(type.dims);
  return type;
}

Status check_type(const TensorType &type) {
  if (type.dtype == DType::none) return invalid("the type has no dtype");
  if (type.dtype == DType::token && type.rank() != 0)
    return invalid("a token has no dims, ", type.rank(), " are given");
  if (type.rank() > max_rank) return invalid("rank ", type.rank(), " is above the limit of ", max_rank);
  if (type.layout == TensorType::Layout::exact && type.strides.size() != type.rank())
    return invalid(type.strides.size(), " strides for rank ", type.rank());
  // First, for messages print the type. So whatever counts elements can be written and read again.
  if (std::ranges::any_of(type.dims, [](const Dim &dim) { return dim.nodes() > 1; })) {
    Expr elements = 1;
    for (size_t d = 0; d < type.rank(); ++d) {
      elements *= type.dims[d];
      if (!type.dims[d].is_readable())
        return invalid("dim ", d, " is an expression of ", type.dims[d].nodes(), " parts, which is too large");
      if (!elements.is_readable())
        return invalid("dims 0 to ", d, " multiply to an expression of ", elements.nodes(),
                       " parts, which is too large");
    }
  }
  // Of the dimensions that are known, by the rule of dense_bytes(); a symbolic one is checked at the call.
  int64_t bytes = size_of(type.dtype);
  for (size_t d = 0; d < type.rank(); ++d) {
    const Dim &dim = type.dims[d];
    if (dim.depends_on_value()) return invalid("dim ", d, " of ", type.text(), " depends on a value of a kernel");
    if (!dim.is_integer()) continue;
    if (dim.integer() < 0) return invalid("dim ", d, " of ", type.text(), " is negative");
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(dim.integer(), 1), &bytes))
      return invalid(type.text(), " exceeds 2^63 bytes");
  }
  return {};
}

Status check_written(std::span<const int64_t> dims, std::span<const int64_t> strides) {
  if (std::ranges::find(dims, 0) != dims.end()) return {};
  const auto reach_of = [&](size_t d) {  // in absolute value; more than there is memory, if it overflows
    const uint64_t stride = strides[d] < 0 ? -static_cast<uint64_t>(strides[d]) : static_cast<uint64_t>(strides[d]);
    return std::min<uint64_t>(stride, INT64_MAX);
  };
  std::vector<size_t> order;
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != 1) order.push_back(d);
  std::ranges::stable_sort(order, {}, reach_of);
  uint64_t reached = 0;  // from the first element, by strides so far
  for (const size_t d : order) {
    if (reach_of(d) <= reached)
      return invalid("stride ", strides[d], " of dim ", d, " of ", dims[d], " elements leads to an element twice");
    uint64_t reach = 0;
    if (__builtin_mul_overflow(reach_of(d), static_cast<uint64_t>(dims[d] - 1), &reach) ||
        __builtin_add_overflow(reached, reach, &reached))
      return invalid("stride ", strides[d], " of dim ", d, " of ", dims[d], " elements leaves the address space");
  }
  return {};
}

Status check_written(const Shape &dims, const Shape &strides) {
  std::vector<int64_t> known_dims, known_strides;
  for (size_t d = 0; d < dims.size(); ++d) {
    // A size that a call tells may be 1, for which strides say nothing.
    if (!dims[d].is_integer() || !strides[d].is_integer()) return {};
    known_dims.push_back(dims[d].integer());
    known_strides.push_back(strides[d].integer());
  }
  return check_written(known_dims, known_strides);
}

}  // namespace kiln
