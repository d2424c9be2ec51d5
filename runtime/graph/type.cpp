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

}  // namespace kiln
