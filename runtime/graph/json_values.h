// The small values of the text form, for who reads it: json_read.cpp, and schemas of ops that are registered. Errors
// carry the view's path.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/graph/attr.h"
#include "runtime/graph/json_view.h"
#include "runtime/graph/type.h"

namespace kiln::json {

Result<Dim> read_dim(const View &v);                              // an integer, or an expression in quotes
Result<DType> read_dtype(const View &v, int last = dtype_count);  // a name; which may be one up to `last`
// {"dtype", "shape", "strides", "device"}: exact, row-major unless strides are given.
Result<TensorType> read_type(const View &v);
// The same of an output: strides may be "any".
Result<std::pair<TensorType, OutputLayout>> read_output_type(const View &v);
Result<uint64_t> read_element(const View &v, DType dtype);  // its bits, in the low bytes
// A type without symbols, and a flat list of its elements; or {"apart": N}, which is one of `apart`, where there are
// any.
Result<TensorPtr> read_tensor(const View &type_view, const View &data_view, std::span<const TensorPtr> apart);
// A value of an attribute; of any kind but graph and tensor.
Result<AttrValue> read_attr(const View &v, AttrKind kind, bool is_list);

// A scalar, or the elements of a list, each by `read`.
template <class T, class Read>
Result<AttrValue> read_items(const View &v, bool is_list, Read read) {
  std::vector<View> elements{v};
  if (is_list) {
    KILN_ASSIGN(elements, v.as_list());
  }
  std::vector<T> items;
  for (const View &element : elements) {
    KILN_ASSIGN(T item, read(element));
    items.push_back(std::move(item));
  }
  AttrValue value;
  value.items = std::move(items);
  value.is_list = is_list;
  return value;
}

}  // namespace kiln::json
