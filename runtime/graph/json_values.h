// Private to json_read.cpp: the small values of the text form. Errors carry the view's path.
#pragma once
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/graph/attr.h"
#include "runtime/graph/json_view.h"
#include "runtime/graph/type.h"

namespace kiln::json {

Result<Dim> read_dim(const View &v);      // an integer, or an expression in quotes
Result<DType> read_dtype(const View &v);  // a name
// {"dtype", "shape", "strides", "device"}: exact, row-major unless strides are given.
Result<TensorType> read_type(const View &v);
// The same of an output: strides may be "any".
Result<std::pair<TensorType, OutputLayout>> read_output_type(const View &v);
Result<uint64_t> read_element(const View &v, DType dtype);  // its bits, in the low bytes
// A type without symbols, and a flat list of its elements; or {"apart": N}, which is one of `apart`, where there are
// any.
Result<TensorPtr> read_tensor(const View &type_view, const View &data_view, std::span<const TensorPtr> apart);

}  // namespace kiln::json
