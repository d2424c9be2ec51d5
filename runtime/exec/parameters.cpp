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

Parameters::Parameters(const Parameters &other)
    : std::enable_shared_from_this<Parameters>(), bindings_(other.bindings_), parts_(other.parts_.store()) {
  const std::lock_guard lock(other.mutex_);
  parts_ = other.parts_;
  list_unverified();
}

void Parameters::bind(uint32_t parameter, Binding binding) {
  bindings_[parameter] = std::move(binding);
  const std::lock_guard lock(mutex_);
  parts_.drop(parameter);
  prepared_.clear();
  ++version_;
}

Result<std::shared_ptr<const Prepared>> Parameters::prepare(const Executable &executable, const Signature &signature,
                                                            const ResolvedSizes &sizes, uint32_t device) {
  const std::lock_guard lock(mutex_);
  if (const auto known = prepared_.find(&executable); known != prepared_.end()) return known->second;
  std::vector<ParameterArray> arrays;
  for (const Binding &binding : bindings_) {
    const uint64_t below =
        sizes.argument(signature.parameters().begin + static_cast<uint32_t>(arrays.size())).below_bytes;
    arrays.push_back(
        {below ? static_cast<uint8_t *>(binding.data) - below : binding.data, binding.place, &binding.source});
  }
  Result<Prepared> made = executable.place().prepare(executable, signature, sizes, arrays, device, parts_);
  if (!made.ok()) return made.take_status().with_prefix("prepare: ");
  list_unverified();
  return prepared_[&executable] = std::make_shared<const Prepared>(std::move(made).value());
}

// Also those that a task reads now: it may be that of who this was copied from, and would drop them there alone.
void Parameters::list_unverified() {
  unverified_.clear();
  for (PartPtr &part : parts_.all())
    if (part->record && !part->record->is_verified()) unverified_.push_back(std::move(part));
  has_unverified_ = !unverified_.empty();
}

void Parameters::verify_records() {
  std::vector<PartPtr> parts;
  {
    const std::lock_guard lock(mutex_);
    parts.swap(unverified_);
    has_unverified_ = false;
  }
  const PreparedParts::Store &store = parts_.store();
  if (parts.empty() || !store.in_background) return;
  store.in_background([self = weak_from_this(), parts = std::move(parts), records = store.records, stop = store.stop,
                       warn = store.warn] {
    for (const PartPtr &part : parts) {
      if (part->record->is_verified()) continue;
      const Status status = part->record->verify(*stop);
      if (status.code() == Code::cancelled) break;
      if (status.ok()) {
        records->note_verified();
        continue;
      }
      if (records->reject(*part->record))
        warn(str_cat("prepared parameters: ", status.message(), "; it is in quarantine, and they are prepared again"));
      if (const auto parameters = self.lock()) parameters->drop(part);
    }
    return Status();
  });
}

void Parameters::drop(const PartPtr &part) {
  const std::lock_guard lock(mutex_);
  parts_.drop(part);
  prepared_.clear();
  ++version_;
}

uint64_t Parameters::prepared_bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto &[executable, prepared] : prepared_) bytes += prepared->size_bytes;
  for (const PartPtr &part : parts_.all()) bytes += part->private_bytes;
  return bytes;
}

std::vector<std::shared_ptr<const PreparedPart>> Parameters::parts() const {
  const std::lock_guard lock(mutex_);
  return parts_.all();
}

}  // namespace kiln
