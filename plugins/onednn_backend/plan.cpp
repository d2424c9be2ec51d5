#include "plan.h"

#include <algorithm>

namespace onednn {

Plan::Plan(const Program &program, Weights &weights, std::vector<Dims> shapes)
    : program_(program),
      weights_(&weights),
      shapes_(std::move(shapes)),
      values_(program.slots.size()),
      padded_(weights.padded()) {
  for (uint32_t slot = 0; slot < values_.size(); ++slot) {
    const bool is_given = slot < program.inputs + program.parameters;
    if (!is_given && !program.slots[slot].is_constant) continue;
    Value &value = values_[slot];
    value.dims = is_given ? shapes_[slot] : program.slots[slot].shape;
    const memory::desc dense = row_major(dtype_of(slot), value.dims);
    value.is_array = is_given;
    value.array = slot;
    value.data = is_given ? array(slot, dense)
                          : memory(dense, cpu(), const_cast<unsigned char *>(program.slots[slot].bytes.data()));
    value.row_major = value.data;
  }
  for (uint32_t step = 0; step < program.steps.size(); ++step) add_step(step);
  // One piece of scratch memory serves all, one after another.
  size_t largest = 0;
  for (const memory &scratchpad : scratchpads_) largest = std::max(largest, scratchpad.get_desc().get_size());
  scratch_ = memory({{static_cast<int64_t>(largest)}, memory::data_type::u8, memory::dims{1}}, cpu());
  for (memory &scratchpad : scratchpads_) scratchpad.set_data_handle(scratch_.get_data_handle());
  for (Execution &execution : executions_)
    for (const auto &[place, argument] : execution.arguments) execution.raw.push_back({place, argument.get()});
  at_.resize(arrays_.size());
}

void Plan::run(Weights &weights, const DLTensor *const *args, const dnnl::stream &stream) {
  if (weights_ != &weights || serial_ != weights.serial()) {
    for (const Weight &bound : bound_weights_) {
      auto &[place, argument] = executions_[bound.execution].arguments[bound.argument];
      argument = bound.layout ? weights.get(bound.step, bound.layout) : weights.bias(bound.step);
      executions_[bound.execution].raw[bound.argument].memory = argument.get();
    }
    weights_ = &weights;
    serial_ = weights.serial();
  }
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const DLTensor &tensor = *args[arrays_[i].first];
    void *const at = static_cast<unsigned char *>(tensor.data) + tensor.byte_offset;
    if (at_[i] == at) continue;
    arrays_[i].second.set_data_handle(at);
    at_[i] = at;
  }
  for (const Execution &execution : executions_)
    dnnl::error::wrap_c_api(dnnl_primitive_execute(execution.primitive.get(), stream.get(),
                                                   static_cast<int>(execution.raw.size()), execution.raw.data()),
                            "a primitive could not run");
}

// ---- memory

memory Plan::array(uint32_t slot, const memory::desc &desc) {
  memory made(desc, cpu(), nullptr);
  arrays_.emplace_back(slot, made);
  return made;
}

memory Plan::row_major_of(uint32_t slot) {
  Value &value = values_[slot];
  if (!value.row_major) {
    value.row_major = memory(row_major(dtype_of(slot), value.dims), cpu());
    add_reorder(value.data, value.row_major);
  }
  return value.row_major;
}

memory Plan::seen(uint32_t slot, const memory::desc &desc) {
  const memory whole = row_major_of(slot);
  if (desc.get_size() > whole.get_desc().get_size()) misfit("an operand is too small");
  if (whole.get_desc() == desc) return whole;
  return values_[slot].is_array ? array(values_[slot].array, desc) : memory(desc, cpu(), whole.get_data_handle());
}

memory Plan::moved(const memory &from, const memory::desc &to) {
  if (from.get_desc() == to) return from;
  const memory there(to, cpu());
  add_reorder(from, there);
  return there;
}

// As many dims, or a convolution's weights, of which the groups are a dim.
memory Plan::in_layout(uint32_t slot, const memory::desc &desc) {
  const memory &data = values_[slot].data;
  return moved(data.get_desc().dims() == desc.dims() ? data : seen(slot, row_major(dtype_of(slot), desc.dims())), desc);
}

memory Plan::room_for(uint32_t slot, const memory::desc &desc) {
  const bool is_dense = program_.is_output(slot) && desc == row_major(dtype_of(slot), desc.dims());
  return is_dense ? array(slot, desc) : memory(desc, cpu());
}

// What a step made, in memory that room_for gave.
void Plan::keep(uint32_t slot, Dims dims, const memory &made) {
  if (program_.slots[slot].rank != dims.size()) misfit("a result has another rank");
  if (program_.is_output(slot) && dims != shapes_[slot]) misfit("an output has another shape");
  Value &value = values_[slot];
  const memory::desc dense = row_major(dtype_of(slot), dims);
  const bool is_dense = made.get_desc() == row_major(dtype_of(slot), made.get_desc().dims());
  value.dims = std::move(dims);
  value.data = made;
  value.is_array = program_.is_output(slot);
  value.array = slot;
  if (is_dense && made.get_desc() != dense)  // a product of folded dims
    value.data = value.is_array ? array(slot, dense) : memory(dense, cpu(), made.get_data_handle());
  if (is_dense) {
    value.row_major = value.data;
  } else if (value.is_array) {
    value.row_major = array(slot, dense);
    add_reorder(made, value.row_major);
  }
}

// ---- primitives

bool Plan::keep_empty(uint32_t slot, const Dims &dims) {
  if (count_of(dims) != 0) return false;
  keep(slot, dims, room_for(slot, row_major(dtype_of(slot), dims)));
  return true;
}

void Plan::add_reorder(const memory &from, const memory &to) {
  const dnnl::reorder::primitive_desc description(from, to, attributes());
  add(description, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace onednn
