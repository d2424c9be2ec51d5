#include "runtime/exec/parameters.h"

namespace kiln {

Binding::Binding(const ArrayRef &array, std::shared_ptr<void> owner)
    : data(array.data),
      dtype(array.dtype),
      has_strides(array.strides != nullptr),
      place(array.place),
      keep(std::move(owner)) {
  if (array.shape) shape.assign(array.shape, array.shape + array.rank);
  if (array.strides) strides.assign(array.strides, array.strides + array.rank);
}

ArrayRef Binding::array() const {
  return {data, dtype, static_cast<uint32_t>(shape.size()), shape.data(), has_strides ? strides.data() : nullptr,
          place};
}

void Parameters::bind(uint32_t parameter, Binding binding) {
  bindings_[parameter] = std::move(binding);
  prepared_.clear();
}

Result<const Prepared *> Parameters::prepare(const Executable &executable, const Signature &signature,
                                             const ResolvedSizes &sizes, uint32_t device) {
  const std::lock_guard lock(mutex_);
  if (const auto known = prepared_.find(&executable); known != prepared_.end()) return &known->second;
  std::vector<ParameterArray> arrays;
  for (const Binding &binding : bindings_) {
    const uint64_t below =
        sizes.argument(signature.parameters().begin + static_cast<uint32_t>(arrays.size())).below_bytes;
    arrays.push_back({below ? static_cast<uint8_t *>(binding.data) - below : binding.data, binding.place});
  }
  Result<Prepared> made = executable.place().prepare(executable, signature, sizes, arrays, device);
  if (!made.ok()) return made.take_status().with_prefix("prepare: ");
  return &prepared_.emplace(&executable, std::move(made).value()).first->second;
}

uint64_t Parameters::prepared_bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto &[executable, prepared] : prepared_) bytes += prepared.size_bytes;
  return bytes;
}

}  // namespace kiln
