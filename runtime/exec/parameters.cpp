#include "runtime/exec/parameters.h"

#include <algorithm>

#include "runtime/exec/steps.h"

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
  prepared_.store(false, std::memory_order_release);
}

Status Parameters::prepare(const Executable &executable, const ResolvedSizes &sizes) {
  if (prepared_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  if (prepared_.load(std::memory_order_relaxed)) return {};
  if (Status status = run_prepare(executable, sizes); !status.ok()) return std::move(status).with_prefix("prepare: ");
  prepared_.store(true, std::memory_order_release);
  return {};
}

Status Parameters::run_prepare(const Executable &executable, const ResolvedSizes &sizes) {
  if (executable.on_device()) return prepare_on_device(executable, sizes);
  const Plan &plan = executable.plan();
  const PlanSizes &numbers = executable.sizes();
  KILN_TRY(place_storages(numbers.prepared, sizes, "prepared parameters", memory_, storages_));
  ReadySteps steps(executable, plan.prepare, numbers.prepare);
  KILN_TRY(steps.resolve(sizes));
  for (uint32_t slot = 0; slot < plan.slots.size(); ++slot) {
    const Plan::Slot &s = plan.slots[slot];
    if (s.kind == Plan::Slot::Kind::parameter) steps.set(slot, bindings_[s.index].data);
    if (s.kind == Plan::Slot::Kind::prepared) steps.set(slot, storages_[s.index]);
  }
  return steps.run([] { return error(Code::internal, "the reference has nothing to prepare"); });
}

Status Parameters::prepare_on_device(const Executable &executable, const ResolvedSizes &sizes) {
  device_.reset();  // before the new one: both need not fit
  std::vector<void *> addresses;
  for (const Binding &binding : bindings_) addresses.push_back(binding.data);
  KILN_ASSIGN(std::shared_ptr<const DeviceProgram> program, executable.device_program());
  KILN_ASSIGN(device_, DeviceParameters::make(executable, std::move(program), sizes, addresses));
  return {};
}

uint64_t Parameters::prepared_bytes() const {
  if (!prepared_.load(std::memory_order_acquire)) return 0;
  return device_ ? device_->size_bytes() : memory_.size_bytes();
}

Status place_storages(std::span<const uint32_t> size_numbers, const ResolvedSizes &sizes, std::string_view what,
                      Areas &memory, std::vector<void *> &out) {
  std::vector<uint64_t> sizes_bytes;
  for (uint32_t number : size_numbers)
    sizes_bytes.push_back(static_cast<uint64_t>(std::max<int64_t>(sizes[number], 0)));
  KILN_TRY(memory.resize(sizes_bytes, what));
  out.clear();
  for (size_t i = 0; i < memory.count(); ++i) out.push_back(memory[i]);
  return {};
}

}  // namespace kiln
