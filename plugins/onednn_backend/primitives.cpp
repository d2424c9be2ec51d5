#include "primitives.h"

#include <algorithm>

namespace onednn {

void misfit(const std::string &what) {
  throw Failure(KILN_CORRUPT, "the program of onednn_backend is of another region: " + what);
}

int64_t count_of(const Dims &dims) {
  int64_t count = 1;
  for (const int64_t size : dims)
    if (__builtin_mul_overflow(count, size, &count)) misfit("an array is too large");
  return count;
}

// A scalar is an array of one dim.
memory::desc row_major(kiln_dtype dtype, const Dims &dims) {
  if (dims.empty()) return {{1}, type_of(dtype), memory::dims{1}};
  memory::dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * std::max<int64_t>(dims[d], 1);
  return {dims, type_of(dtype), strides};
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// ---- products

namespace {

memory::dims strides_of(const Dims &dims, bool transposed) {  // of the last two dims, as they are read
  const size_t rank = dims.size();
  memory::dims strides(rank, 1);
  const int64_t rows = std::max<int64_t>(dims[rank - 2], 1), columns = std::max<int64_t>(dims[rank - 1], 1);
  strides[rank - 1] = transposed ? rows : 1;
  strides[rank - 2] = transposed ? 1 : columns;
  int64_t size = rows * columns;
  for (size_t d = rank - 2; d-- > 0;) {
    strides[d] = size;
    size *= std::max<int64_t>(dims[d], 1);
  }
  return strides;
}

}  // namespace

ProductShape shape_product(const Step &step, const Dims &a_dims, const Dims &b_dims, bool has_bias) {
  const bool a_is_row = a_dims.size() == 1, b_is_column = b_dims.size() == 1;
  const bool a_turns = step.transpose_a && !a_is_row, b_turns = step.transpose_b && !b_is_column;
  ProductShape shape;
  shape.a = a_dims;
  shape.b = b_dims;
  if (a_is_row) shape.a.insert(shape.a.begin(), 1);
  if (b_is_column) shape.b.push_back(1);
  if (a_turns) std::swap(shape.a.end()[-1], shape.a.end()[-2]);
  if (b_turns) std::swap(shape.b.end()[-1], shape.b.end()[-2]);
  if (shape.a.back() != shape.b.end()[-2]) misfit("operands of a product do not fit");
  if (shape.b.size() == 2 && !a_turns && shape.a.size() > 2) {  // one matrix of all rows
    shape.shape.assign(shape.a.begin(), shape.a.end() - 1);
    shape.a = {count_of(shape.shape), shape.a.back()};
  } else {
    while (shape.a.size() < shape.b.size()) shape.a.insert(shape.a.begin(), 1);
    while (shape.b.size() < shape.a.size()) shape.b.insert(shape.b.begin(), 1);
    for (size_t d = 0; d + 2 < shape.a.size(); ++d) {
      if (shape.a[d] != shape.b[d] && shape.a[d] != 1 && shape.b[d] != 1) misfit("operands of a product do not fit");
      shape.shape.push_back(shape.a[d] == 1 ? shape.b[d] : shape.a[d]);
    }
    shape.shape.push_back(shape.a.end()[-2]);
  }
  shape.result = shape.shape;
  if (shape.a.size() == 2) shape.result = {shape.a[0]};
  shape.shape.push_back(shape.b.back());
  shape.result.push_back(shape.b.back());
  if (b_is_column) shape.shape.pop_back();
  if (a_is_row) shape.shape.erase(shape.shape.end() - (b_is_column ? 1 : 2));
  if (has_bias) shape.bias.assign(shape.result.size() - 1, 1), shape.bias.push_back(shape.b.back());
  shape.a_strides = strides_of(shape.a, a_turns);
  shape.b_strides = strides_of(shape.b, b_turns);
  return shape;
}

dnnl::matmul::primitive_desc product_of(const dnnl::engine &engine, kiln_dtype dtype, const ProductShape &shape,
                                        bool fixed, bool has_bias, const dnnl::primitive_attr &attr) {
  const auto type = type_of(dtype);
  const memory::desc a(shape.a, type, shape.a_strides), result = row_major(dtype, shape.result);
  const memory::desc b =
      fixed ? memory::desc(shape.b, type, memory::format_tag::any) : memory::desc(shape.b, type, shape.b_strides);
  if (!has_bias) return {dnnl::matmul::desc(a, b, result), attr, engine};
  return {dnnl::matmul::desc(a, b, row_major(dtype, shape.bias), result), attr, engine};
}

// ---- windows

namespace {

// How many windows of `kernel` elements there are along a dim of space.
int64_t windows(const Step &step, size_t space, int64_t size, int64_t kernel) {
  const int64_t window = (kernel - 1) * step.steps[space] + 1;
  const int64_t room = size + step.padding_low[space] + step.padding_high[space] - window;
  return room < 0 ? 0 : room / step.strides[space] + 1;
}

}  // namespace

Dims convolved(const Step &step, const Dims &x, const Dims &weight) {
  if (x.size() < 3 || weight.size() != x.size() || x[1] != weight[1] * step.groups || weight[0] % step.groups != 0)
    misfit("operands of a convolution do not fit");
  Dims result = {x[0], weight[0]};
  for (size_t d = 2; d < x.size(); ++d) result.push_back(windows(step, d - 2, x[d], weight[d]));
  return result;
}

Dims grouped(const Step &step, const Dims &weight) {
  if (step.groups == 1) return weight;
  Dims dims = {step.groups, weight[0] / step.groups};
  dims.insert(dims.end(), weight.begin() + 1, weight.end());
  return dims;
}

dnnl::convolution_forward::primitive_desc convolution_of(const dnnl::engine &engine, const Step &step, kiln_dtype dtype,
                                                         const Dims &x, const Dims &weight, bool has_bias,
                                                         const dnnl::primitive_attr &attr) {
  const auto any = [&](const Dims &dims) { return memory::desc(dims, type_of(dtype), memory::format_tag::any); };
  const memory::desc from = any(x), weights = any(grouped(step, weight)), to = any(convolved(step, x, weight));
  memory::dims between = step.steps;  // which oneDNN counts from 0
  for (int64_t &gap : between) --gap;
  using Conv = dnnl::convolution_forward;
  constexpr auto way = dnnl::prop_kind::forward_inference;
  constexpr auto how = dnnl::algorithm::convolution_direct;
  if (!has_bias)
    return {Conv::desc(way, how, from, weights, to, step.strides, between, step.padding_low, step.padding_high), attr,
            engine};
  const memory::desc bias = any({weight[0]});
  return {Conv::desc(way, how, from, weights, bias, to, step.strides, between, step.padding_low, step.padding_high),
          attr, engine};
}

Dims pooled(const Step &step, const Dims &x) {
  Dims result = {x[0], x[1]};
  for (size_t d = 2; d < x.size(); ++d) result.push_back(windows(step, d - 2, x[d], step.kernel[d - 2]));
  return result;
}

}  // namespace onednn
