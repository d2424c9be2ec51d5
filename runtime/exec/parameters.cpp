#include "runtime/exec/parameters.h"

#include <algorithm>

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

Parameters::Parameters(const Executable &executable, PreparedParts::Store store)
    : weights_(executable.weights()),
      bindings_(executable.plan().parameters.size()),
      parts_(std::move(store), executable.weights()) {
  for (uint32_t p = 0; weights_ && p < bindings_.size(); ++p) bindings_[p] = stored(p);
}

Parameters::Parameters(const Parameters &other)
    : std::enable_shared_from_this<Parameters>(),
      weights_(other.weights_),
      bindings_(other.bindings_),
      parts_(other.parts_.store(), nullptr) {
  const std::lock_guard lock(other.mutex_);
  parts_ = other.parts_;
  list_unverified();
}

// Which the executable has checked.
Binding Parameters::stored(uint32_t parameter) const {
  Binding binding;
  if (!weights_) return binding;
  const auto &all = weights_->table().parameters;
  const auto found = std::ranges::find(all, parameter, &WeightsTable::Parameter::number);
  if (found == all.end()) return binding;
  binding.is_stored = binding.has_strides = true;
  binding.dtype = found->dtype;
  binding.shape = found->dims;
  binding.strides = found->strides;
  if (found->has_values) {
    const uint64_t below = extent_of(binding.array())->below;
    binding.data = const_cast<uint8_t *>(weights_->bytes().data()) + found->offset + below;  // calls only read it
  }
  return binding;
}

void Parameters::bind(uint32_t parameter, Binding binding) {
  bindings_[parameter] = binding.bound() ? std::move(binding) : stored(parameter);
  const std::lock_guard lock(mutex_);
  parts_.drop(parameter);
  prepared_.clear();
  ++version_;
}

std::vector<ParameterArray> Parameters::arrays(const Signature &signature, const ResolvedSizes &sizes) const {
  std::vector<ParameterArray> arrays;
  for (const Binding &binding : bindings_) {
    const uint64_t below =
        sizes.argument(signature.parameters().begin + static_cast<uint32_t>(arrays.size())).below_bytes;
    void *const lowest = binding.data ? static_cast<uint8_t *>(binding.data) - below : nullptr;
    arrays.push_back({lowest, binding.is_stored, binding.place, &binding.source});
  }
  return arrays;
}

bool Parameters::uses_weights() const { return std::ranges::any_of(bindings_, &Binding::is_stored); }

// The file is not what it was, and there is nothing to make it of again.
Status Parameters::check_weights() const {
  if (!uses_weights() || !weights_->is_rejected()) return {};
  return error(Code::corrupt, "'", weights_->path(), "' is damaged, which has the parameters");
}

Result<std::shared_ptr<const Prepared>> Parameters::prepare(const Executable &executable, const Signature &signature,
                                                            const ResolvedSizes &sizes, uint32_t device) {
  const std::lock_guard lock(mutex_);
  if (const auto known = prepared_.find(&executable); known != prepared_.end()) return known->second;
  KILN_TRY(check_weights());
  Result<Prepared> made =
      executable.place().prepare(executable, signature, sizes, arrays(signature, sizes), device, parts_, false);
  if (!made.ok()) return made.take_status().with_prefix("prepare: ");
  list_unverified();
  return prepared_[&executable] = std::make_shared<const Prepared>(std::move(made).value());
}

// What others mapped before it was verified is verified here: whoever keeps it gives it new sums.
Status Parameters::prepare_parts(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes,
                                 uint32_t device) {
  const std::lock_guard lock(mutex_);
  const std::atomic<bool> never = false;
  if (uses_weights() && !weights_->is_verified() && !weights_->verify(never).ok()) weights_->reject();
  KILN_TRY(check_weights());
  for (bool is_right = false; !is_right;) {
    Result<Prepared> made =
        executable.place().prepare(executable, signature, sizes, arrays(signature, sizes), device, parts_, true);
    if (!made.ok()) return made.take_status().with_prefix("prepare: ");
    is_right = true;
    for (const PartPtr &part : parts_.all()) {
      if (!part->record || part->record->is_verified() || part->record->verify(never).ok()) continue;
      parts_.store().records->reject(*part->record);
      parts_.drop(part);
      prepared_.clear();
      ++version_;
      is_right = false;
    }
  }
  return {};
}

std::shared_ptr<const PreparedPart> Parameters::part(const Digest &name) const {
  const std::lock_guard lock(mutex_);
  return parts_.get(name);
}

// Also those that a task reads now: it may be that of who this was copied from, and would drop them there alone.
void Parameters::list_unverified() {
  unverified_.clear();
  for (PartPtr &part : parts_.all())
    if (part->record && !part->record->is_verified()) unverified_.push_back(std::move(part));
  has_unverified_ = !unverified_.empty() || (weights_ && !weights_->is_verified());
}

void Parameters::verify_records() {
  std::vector<PartPtr> parts;
  {
    const std::lock_guard lock(mutex_);
    parts.swap(unverified_);
    has_unverified_ = false;
  }
  const PreparedParts::Store &store = parts_.store();
  if (!store.in_background) return;
  store.in_background([self = weak_from_this(), parts = std::move(parts), weights = weights_, records = store.records,
                       stop = store.stop, warn = store.warn] {
    if (weights && !weights->is_verified()) {
      const Status status = weights->is_rejected() ? Status() : weights->verify(*stop);
      if (status.code() == Code::cancelled) return Status();
      if (!status.ok() && weights->reject())
        warn(str_cat("'", weights->path(), "' is damaged, which has the parameters of a call: ", status.message()));
      const auto parameters = weights->is_rejected() ? self.lock() : nullptr;
      if (parameters) parameters->drop(nullptr);
    }
    for (const PartPtr &part : parts) {
      if (part->record->is_verified()) continue;
      const Status status = part->record->verify(*stop);
      if (status.code() == Code::cancelled) break;
      if (status.ok()) {
        records->note_verified();
        continue;
      }
      if (records->reject(*part->record))
        warn(str_cat("prepared parameters: the record is damaged: ", status.message(),
                     "; it is in quarantine, and they are prepared again"));
      if (const auto parameters = self.lock()) parameters->drop(part);
    }
    return Status();
  });
}

void Parameters::drop(const PartPtr &part) {
  const std::lock_guard lock(mutex_);
  if (part) parts_.drop(part);
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
