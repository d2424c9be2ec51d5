// Shorthand for the samples of records.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ops/op.h"

namespace kiln::ops {

inline TensorType f32(Shape dims) { return make_type(DType::f32, std::move(dims)); }
inline TensorType i64(Shape dims) { return make_type(DType::i64, std::move(dims)); }
inline TensorType boolean(Shape dims) { return make_type(DType::boolean, std::move(dims)); }
inline Dim sym(const char *name) { return Expr::symbol(name); }
inline AttrValue ints(std::vector<int64_t> values) { return AttrValue(std::move(values)); }

// Of one f32 operand.
inline Sample sample_of(const char *name, Shape x, AttrMap attrs, std::map<std::string, int64_t> sizes) {
  return {.name = name, .inputs = {f32(std::move(x))}, .attrs = std::move(attrs), .sizes = std::move(sizes)};
}

inline void add_sample(SampleSink &out, const char *name, Shape x, AttrMap attrs,
                       std::map<std::string, int64_t> sizes = {}) {
  out.push_back(sample_of(name, std::move(x), std::move(attrs), std::move(sizes)));
}
// Whose integers are indices, below `size`.
inline void add_index_sample(SampleSink &out, std::string name, std::vector<TensorType> inputs, AttrMap attrs,
                             int64_t size, std::map<std::string, int64_t> sizes = {}) {
  out.push_back({.name = std::move(name),
                 .inputs = std::move(inputs),
                 .attrs = std::move(attrs),
                 .sizes = std::move(sizes),
                 .int_low = 0,
                 .int_high = size});
}

// Values for Sample::given.
template <class T>
TensorData tensor_of(DType dtype, std::vector<int64_t> shape, const std::vector<T> &values) {
  TensorData data{dtype, std::move(shape), Bytes(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(data.bytes.data(), values.data(), data.bytes.size());
  return data;
}
inline TensorData f32_data(std::vector<int64_t> shape, const std::vector<float> &values) {
  return tensor_of(DType::f32, std::move(shape), values);
}
inline TensorData i64_data(std::vector<int64_t> shape, const std::vector<int64_t> &values) {
  return tensor_of(DType::i64, std::move(shape), values);
}
inline TensorData bool_data(std::vector<int64_t> shape, const std::vector<uint8_t> &values) {
  return tensor_of(DType::boolean, std::move(shape), values);
}

}  // namespace kiln::ops
