#include "weights.h"

#include <atomic>
#include <cmath>

namespace onednn {

const dnnl::engine &cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

Weights::Weights(const Program &program, const DLTensor *const *parameters, uint64_t count)
    : program_(program), parameters_(parameters, parameters + count) {
  static std::atomic<uint64_t> made{0};
  serial_ = ++made;
  if (count != 0 && count != program.parameters) misfit("it has other parameters");
  for (uint64_t i = 0; i < count; ++i) {
    const Slot &slot = program.slots[program.inputs + i];
    const DLTensor &tensor = *parameters[i];
    if (Dims(tensor.shape, tensor.shape + tensor.ndim) != slot.shape) misfit("a parameter has another shape");
    if (tensor.dtype.bits != 8 * size_of(slot.dtype)) misfit("a parameter is of another element type");
  }
  for (uint32_t i = 0; i < program.steps.size(); ++i) {
    const Step &step = program.steps[i];
    if (step.kind != Kind::product && step.kind != Kind::convolution) continue;
    const uint32_t weight = step.operands[1];
    if (!is_prepared(program, step) || (program.slots[weight].is_bound && count == 0)) continue;
    if (has_norm(step)) fold_norm(step, kept_[i]);
    if (step.is_padding_zero && !is_finite(i)) padded_.insert(i);
    prepare(i);
  }
}

const unsigned char *Weights::bytes_of(uint32_t slot) const {
  if (program_.slots[slot].is_constant) return program_.slots[slot].bytes.data();
  const DLTensor &tensor = *parameters_.at(slot - program_.inputs);
  return static_cast<const unsigned char *>(tensor.data) + tensor.byte_offset;
}

// y = (conv(x, w) + b - mean) / sqrt(variance + eps) * scale + shift is a convolution, too.
void Weights::fold_norm(const Step &step, Kept &kept) const {
  const Slot &weight = program_.slots[step.operands[1]];
  const auto channels = static_cast<size_t>(weight.shape.at(0));
  const float *of[5];  // bias, scale, shift, mean, variance
  for (size_t i = 0; i < 5; ++i) {
    const uint32_t slot = step.operands[2 + i];
    of[i] = nullptr;
    if (slot == no_slot && i == 0) continue;
    if (slot == no_slot || !program_.is_fixed(slot) || program_.slots[slot].dtype != KILN_F32 ||
        program_.slots[slot].shape != Dims{weight.shape[0]})
      misfit("a batch norm has other channels");
    of[i] = reinterpret_cast<const float *>(bytes_of(slot));
  }
  if (weight.dtype != KILN_F32) misfit("a batch norm is of another element type");
  const auto *from = reinterpret_cast<const float *>(bytes_of(step.operands[1]));
  const auto size = static_cast<size_t>(count_of(weight.shape));
  const size_t each = channels == 0 ? 0 : size / channels;
  kept.scaled.resize(size);
  kept.bias.resize(channels);
  for (size_t c = 0; c < channels; ++c) {
    const float factor = of[1][c] / std::sqrt(of[4][c] + step.alpha);
    kept.bias[c] = ((of[0] ? of[0][c] : 0) - of[3][c]) * factor + of[2][c];
    for (size_t i = c * each; i < (c + 1) * each; ++i) kept.scaled[i] = from[i] * factor;
  }
}

bool Weights::is_finite(uint32_t index) {
  const Slot &weight = program_.slots[program_.steps[index].operands[1]];
  const auto size = static_cast<size_t>(count_of(weight.shape));
  const auto finite = [size](const auto *bits, auto exponent) {
    for (size_t i = 0; i < size; ++i)
      if ((bits[i] & exponent) == exponent) return false;
    return true;
  };
  const std::vector<float> &scaled = kept_[index].scaled;
  const void *from =
      scaled.empty() ? bytes_of(program_.steps[index].operands[1]) : static_cast<const void *>(scaled.data());
  return weight.dtype == KILN_BF16 ? finite(static_cast<const uint16_t *>(from), uint16_t{0x7f80})
                                   : finite(static_cast<const uint32_t *>(from), uint32_t{0x7f800000});
}

void Weights::prepare(uint32_t index) {
  const Step &step = program_.steps[index];
  const Slot &weight = program_.slots[step.operands[1]];
  if (step.nominal.empty() || count_of(weight.shape) == 0) return;
  try {
    if (step.kind == Kind::product) {
      const ProductShape shape = shape_product(step, step.nominal, weight.shape, has_bias(step));
      get(index, product_of(cpu(), weight.dtype, shape, true, has_bias(step), attributes()).weights_desc());
    } else {
      get(index, convolution_of(cpu(), step, weight.dtype, step.nominal, weight.shape, has_bias(step), attributes())
                     .weights_desc());
    }
  } catch (const dnnl::error &error) {
    if (error.status == dnnl_out_of_memory) throw;  // else these sizes may be none: a run will tell its own
  }
}

memory Weights::get(uint32_t index, const memory::desc &layout) {
  const std::lock_guard lock(mutex_);
  Kept &kept = kept_[index];
  for (const auto &[desc, made] : kept.layouts)
    if (desc == layout) return made;
  const Step &step = program_.steps[index];
  const Slot &weight = program_.slots[step.operands[1]];
  const bool is_product = step.kind == Kind::product;
  memory::desc plain = row_major(weight.dtype, is_product ? weight.shape : grouped(step, weight.shape));
  if (is_product && step.transpose_b) plain = plain.permute_axes({1, 0});
  const void *from =
      kept.scaled.empty() ? bytes_of(step.operands[1]) : reinterpret_cast<const unsigned char *>(kept.scaled.data());
  memory to(layout, cpu());
  memory source(plain, cpu(), const_cast<void *>(from));
  dnnl::stream stream(cpu());
  dnnl::reorder(source, to).execute(stream, source, to);
  stream.wait();
  kept.layouts.emplace_back(layout, to);
  return to;
}

memory Weights::bias(uint32_t index) {
  const Step &step = program_.steps[index];
  const std::lock_guard lock(mutex_);
  Kept &kept = kept_[index];
  const bool is_folded = has_norm(step);
  const int64_t channels =
      is_folded ? static_cast<int64_t>(kept.bias.size()) : count_of(program_.slots[step.operands[2]].shape);
  const kiln_dtype dtype = program_.slots[step.operands[1]].dtype;
  const void *from = is_folded ? static_cast<const void *>(kept.bias.data()) : bytes_of(step.operands[2]);
  return memory(row_major(dtype, {channels}), cpu(), const_cast<void *>(from));
}

}  // namespace onednn
