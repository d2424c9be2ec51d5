// A program's steps to primitives.
#include <algorithm>
#include <cstring>

#include "plan.h"

namespace onednn {

memory Plan::post_operand(const Post &post, const Product &product, const Dims &dims) {
  const Dims &other = dims_of(post.operand);
  const kiln_dtype dtype = dtype_of(post.operand);
  if (other == dims) {
    const bool is_folded = product.dims != dims;
    return is_folded ? seen(post.operand, product.layout) : in_layout(post.operand, product.layout);
  }
  Dims few(product.dims.size(), 1);
  const int64_t count = count_of(other);
  if (count != 1) few[product.channel] = product.dims[product.channel];
  if (count != 1 && count != few[product.channel]) misfit("what follows a step has another shape");
  return seen(post.operand, row_major(dtype, few));
}

void Plan::add_post(const Post &post, const memory &to, const memory &other) {
  const memory::desc layout = to.get_desc();
  if (post.is_binary)
    add(dnnl::binary::primitive_desc({post.algorithm, layout, other.get_desc(), layout}, attributes(), cpu()),
        {{DNNL_ARG_SRC_0, to}, {DNNL_ARG_SRC_1, other}, {DNNL_ARG_DST, to}});
  else
    add(dnnl::eltwise_forward::primitive_desc(
            {dnnl::prop_kind::forward_inference, post.algorithm, layout, post.alpha, post.beta}, attributes(), cpu()),
        {{DNNL_ARG_SRC, to}, {DNNL_ARG_DST, to}});
}

template <class Make>
void Plan::add_with_posts(uint32_t index, const Make &make, const Product &product, Dims dims, Arguments arguments,
                          const memory::desc &weights) {
  const Step &step = program_.steps[index];
  dnnl::post_ops posts;
  std::vector<memory> others;
  Arguments with_others = arguments;
  for (const Post &post : step.posts) {
    others.emplace_back();
    if (post.is_binary) {
      others.back() = post_operand(post, product, dims);
      with_others.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(posts.len()) | DNNL_ARG_SRC_1, others.back());
      posts.append_binary(post.algorithm, others.back().get_desc());
    } else {
      posts.append_eltwise(1, post.algorithm, post.alpha, post.beta);
    }
  }
  const memory to = room_for(step.result, product.layout);
  with_others.emplace_back(DNNL_ARG_DST, to);
  arguments.emplace_back(DNNL_ARG_DST, to);
  if (!weights.is_zero()) bound_weights_.push_back({executions_.size(), 1, index, weights});
  if (has_norm(step)) bound_weights_.push_back({executions_.size(), 2, index, {}});
  dnnl::primitive_attr attr = attributes();
  attr.set_post_ops(posts);
  bool is_fused = false;
  try {
    const auto description = make(attr);
    is_fused = description.dst_desc() == product.layout && (weights.is_zero() || description.weights_desc() == weights);
    if (is_fused) add(description, std::move(with_others));
  } catch (const dnnl::error &error) {
    if (error.status != dnnl_unimplemented || step.posts.empty()) throw;
  }
  if (!is_fused) {
    add(make(attributes()), std::move(arguments));
    for (size_t i = 0; i < step.posts.size(); ++i) add_post(step.posts[i], to, others[i]);
  }
  keep(step.result, std::move(dims), to);
}

void Plan::add_product(uint32_t index) {
  const Step &step = program_.steps[index];
  const uint32_t a = step.operands[0], b = step.operands[1], bias = step.operands[2];
  const kiln_dtype dtype = dtype_of(a);
  const ProductShape shape = shape_product(step, dims_of(a), dims_of(b), bias != no_slot);
  if (keep_empty(step.result, shape.shape)) return;
  const bool is_fixed = is_prepared(program_, step);
  const auto make = [&](const dnnl::primitive_attr &attr) {
    return product_of(cpu(), dtype, shape, is_fixed, bias != no_slot, attr);
  };
  const memory::desc weights = make(attributes()).weights_desc(), result = row_major(dtype, shape.result);
  Arguments arguments = {{DNNL_ARG_SRC, seen(a, {shape.a, type_of(dtype), shape.a_strides})},
                         {DNNL_ARG_WEIGHTS, is_fixed ? weights_->get(index, weights) : seen(b, weights)}};
  if (bias != no_slot) arguments.emplace_back(DNNL_ARG_BIAS, seen(bias, row_major(dtype, shape.bias)));
  add_with_posts(index, make, {shape.result, shape.result.size() - 1, result}, shape.shape, std::move(arguments),
                 is_fixed ? weights : memory::desc());
}

// The first operand with zeros around it.
memory Plan::pad(const Step &step) {
  const uint32_t x = step.operands[0];
  const Dims &inner = dims_of(x);
  Dims dims = inner;
  memory::dims offsets(dims.size(), 0);
  for (size_t d = 2; d < dims.size(); ++d) {
    dims[d] += step.padding_low[d - 2] + step.padding_high[d - 2];
    offsets[d] = step.padding_low[d - 2];
  }
  const memory whole(row_major(dtype_of(x), dims), cpu());
  std::memset(whole.get_data_handle(), 0, whole.get_desc().get_size());
  if (count_of(inner) != 0)
    add_reorder(row_major_of(x),
                memory(whole.get_desc().submemory_desc(inner, offsets), cpu(), whole.get_data_handle()));
  padding_.push_back(whole);
  return whole;
}

void Plan::add_convolution(uint32_t index) {
  const Step &step = program_.steps[index];
  const uint32_t x = step.operands[0], weight = step.operands[1], bias = step.operands[2];
  const kiln_dtype dtype = dtype_of(x);
  const bool is_fixed = is_prepared(program_, step);
  if (has_norm(step) && !is_fixed) misfit("a batch norm's weights are not fixed");
  const Dims dims = convolved(step, dims_of(x), dims_of(weight));
  if (keep_empty(step.result, dims)) return;
  memory from = values_[x].data;
  Step padded = step;
  if (padded_.contains(index)) {
    from = pad(step);
    padded.padding_low.assign(step.padding_low.size(), 0);
    padded.padding_high = padded.padding_low;
  }
  const Dims from_dims = from.get_desc().dims();
  if (count_of(from_dims) == 0) throw Failure(KILN_UNIMPLEMENTED, "oneDNN has no convolution of padding alone");
  const auto make = [&](const dnnl::primitive_attr &attr) {
    return convolution_of(cpu(), padded, dtype, from_dims, dims_of(weight), has_bias(step), attr);
  };
  const auto likes = make(attributes());
  const memory::desc weights = likes.weights_desc();
  Arguments arguments = {{DNNL_ARG_SRC, moved(from, likes.src_desc())},
                         {DNNL_ARG_WEIGHTS, is_fixed ? weights_->get(index, weights) : in_layout(weight, weights)}};
  if (has_norm(step))
    arguments.emplace_back(DNNL_ARG_BIAS, weights_->bias(index));
  else if (bias != no_slot)
    arguments.emplace_back(DNNL_ARG_BIAS, seen(bias, row_major(dtype, {count_of(dims_of(bias))})));
  add_with_posts(index, make, {dims, 1, likes.dst_desc()}, dims, std::move(arguments),
                 is_fixed ? weights : memory::desc());
}

void Plan::add_binary(const Step &step) {
  const uint32_t a = step.operands[0], b = step.operands[1];
  const Dims &dims = dims_of(a);
  if (keep_empty(step.result, dims)) return;
  const size_t rank = std::max<size_t>(dims.size(), 1);
  Dims other = dims_of(b);
  if (other.size() > rank) misfit("an operand has another rank");
  other.insert(other.begin(), rank - other.size(), 1);
  const memory::desc layout = row_major(dtype_of(a), dims);
  const memory to = room_for(step.result, layout), x = row_major_of(a), y = seen(b, row_major(dtype_of(b), other));
  add(dnnl::binary::primitive_desc({step.algorithm, layout, y.get_desc(), layout}, attributes(), cpu()),
      {{DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, y}, {DNNL_ARG_DST, to}});
  keep(step.result, dims, to);
}

void Plan::add_norm(const Step &step) {
  const uint32_t x = step.operands[0];
  if (keep_empty(step.result, dims_of(x))) return;
  const memory from = values_[x].data;
  const memory::desc channels = row_major(dtype_of(x), {dims_of(x).at(1)});
  using dnnl::normalization_flags;
  const dnnl::batch_normalization_forward::primitive_desc description(
      {dnnl::prop_kind::forward_inference, from.get_desc(), step.alpha,
       normalization_flags::use_global_stats | normalization_flags::use_scale | normalization_flags::use_shift},
      attributes(), cpu());
  const memory to = room_for(step.result, from.get_desc());
  add(description, {{DNNL_ARG_SRC, from},
                    {DNNL_ARG_SCALE, seen(step.operands[1], channels)},
                    {DNNL_ARG_SHIFT, seen(step.operands[2], channels)},
                    {DNNL_ARG_MEAN, seen(step.operands[3], channels)},
                    {DNNL_ARG_VARIANCE, seen(step.operands[4], channels)},
                    {DNNL_ARG_DST, to}});
  keep(step.result, dims_of(x), to);
}

void Plan::add_pooling(const Step &step) {
  const uint32_t x = step.operands[0];
  const Dims dims = pooled(step, dims_of(x));
  if (keep_empty(step.result, dims)) return;
  memory::dims between = step.steps;  // which oneDNN counts from 0
  for (int64_t &gap : between) --gap;
  const memory from = values_[x].data;
  const dnnl::pooling_v2_forward::primitive_desc description({dnnl::prop_kind::forward_inference,
                                                              step.algorithm,
                                                              from.get_desc(),
                                                              {dims, type_of(dtype_of(x)), memory::format_tag::any},
                                                              step.strides,
                                                              step.kernel,
                                                              between,
                                                              step.padding_low,
                                                              step.padding_high},
                                                             attributes(), cpu());
  const memory to = room_for(step.result, description.dst_desc());
  add(description, {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  keep(step.result, dims, to);
}

void Plan::add_function(const Step &step) {
  const uint32_t x = step.operands[0];
  if (keep_empty(step.result, dims_of(x))) return;
  const memory from = values_[x].data;
  const memory to = room_for(step.result, from.get_desc());
  if (step.kind == Kind::softmax)
    add(dnnl::softmax_forward::primitive_desc(
            {dnnl::prop_kind::forward_inference, from.get_desc(), static_cast<int>(step.axis)}, attributes(), cpu()),
        {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  else
    add(dnnl::eltwise_forward::primitive_desc(
            {dnnl::prop_kind::forward_inference, step.algorithm, from.get_desc(), step.alpha, step.beta}, attributes(),
            cpu()),
        {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  keep(step.result, dims_of(x), to);
}

// Of a copy, and of a reshape, the elements are the same in row-major order.
void Plan::add_copy(const Step &step) {
  const uint32_t x = step.operands[0];
  Dims dims = step.kind == Kind::copy ? dims_of(x) : step.shape;
  const int64_t count = count_of(dims_of(x));
  if (const auto open = std::find(dims.begin(), dims.end(), -1); open != dims.end()) {
    *open = 1;
    const int64_t rest = count_of(dims);
    *open = rest == 0 ? 0 : count / rest;
  }
  if (count_of(dims) != count) misfit("a shape has another number of elements");
  if (keep_empty(step.result, dims)) return;
  const memory::desc layout = row_major(dtype_of(x), dims);
  if (!program_.is_output(step.result)) {
    const memory same = seen(x, layout);
    Value &value = values_[step.result];
    value = {dims, same, same, values_[x].is_array, values_[x].array};
    return;
  }
  const memory to = room_for(step.result, layout);
  add_reorder(seen(x, layout), to);
  keep(step.result, dims, to);
}

void Plan::add_step(uint32_t index) {
  const Step &step = program_.steps[index];
  switch (step.kind) {
    case Kind::product:
      return add_product(index);
    case Kind::convolution:
      return add_convolution(index);
    case Kind::eltwise:
    case Kind::softmax:
      return add_function(step);
    case Kind::binary:
      return add_binary(step);
    case Kind::pooling:
      return add_pooling(step);
    case Kind::norm:
      return add_norm(step);
    case Kind::reshape:
    case Kind::copy:
      return add_copy(step);
  }
}

}  // namespace onednn
