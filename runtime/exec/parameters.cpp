#include "runtime/exec/parameters.h"

namespace kiln {

Binding::Binding(const ArrayRef &array, std::shared_ptr<void> owner)
    : data(array.data), dtype(array.dtype), has_strides(array.strides != nullptr), keep(std::move(owner)) {
  if (array.shape) shape.assign(array.shape, array.shape + array.rank);
  if (array.strides) strides.assign(array.strides, array.strides + array.rank);
}

ArrayRef Binding::array() const {
  return {data, dtype, static_cast<uint32_t>(shape.size()), shape.data(), has_strides ? strides.data() : nullptr};
}

void Parameters::bind(uint32_t parameter, Binding binding) {
  bindings_[parameter] = std::move(binding);
  is_prepared_.store(false, std::memory_order_release);
}

Status Parameters::prepare(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes) {
  if (is_prepared_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  if (is_prepared_.load(std::memory_order_relaxed)) return {};
  prepared_ = {};  // before the new one: both need not fit
  std::vector<void *> addresses;
  for (const Binding &binding : bindings_) addresses.push_back(binding.data);
  Result<Prepared> made = executable.place().prepare(executable, signature, sizes, addresses);
  if (!made.ok()) return made.take_status().with_prefix("prepare: ");
  prepared_ = std::move(made).value();
  is_prepared_.store(true, std::memory_order_release);
  return {};
}

uint64_t Parameters::prepared_bytes() const {
  return is_prepared_.load(std::memory_order_acquire) ? prepared_.size_bytes : 0;
}

}  // namespace kiln
