#include "runtime/exec/device_place.h"

#include <algorithm>

#include "runtime/exec/device_steps.h"
#include "runtime/exec/layout.h"

namespace kiln {
namespace {

constexpr uint64_t block_alignment = 256;  // bytes: of all that lies in one block of the device's memory

uint64_t device_address(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// What lies at these offsets of a block, as kernels take addresses.
std::vector<void *> addresses_at(uint64_t block, std::span<const uint64_t> offsets) {
  std::vector<void *> addresses;
  for (uint64_t offset : offsets) addresses.push_back(reinterpret_cast<void *>(static_cast<uintptr_t>(block + offset)));
  return addresses;
}

void set_constants(const DeviceProgram &program, ReadySteps &steps) {
  steps.set(Plan::Slot::Kind::constant, addresses_at(0, program.constants()));
}

class DeviceRunner final : public Runner {
 public:
  DeviceRunner(const Executable &executable, std::shared_ptr<const DeviceProgram> program,
               std::shared_ptr<DeviceQueue> queue, const Signature &signature, const ResolvedSizes &sizes)
      : executable_(executable),
        signature_(signature),
        sizes_(sizes),
        program_(std::move(program)),
        queue_(std::move(queue)),
        memory_(queue_),
        steps_(executable, executable.plan().steps, executable.sizes().steps) {
    set_constants(*program_, steps_);
  }

  Status place() override {
    KILN_TRY(steps_.resolve(sizes_));
    Layout layout(block_alignment);
    const std::vector<uint64_t> arena = layout.add(sizes_.bytes(executable_.sizes().arena));
    const std::vector<uint64_t> inputs = layout.add(sizes_.bytes(signature_.inputs()));
    const std::vector<uint64_t> outputs = layout.add(sizes_.bytes(signature_.outputs()));
    KILN_TRY(memory_.grow(layout.size_bytes(), "arena"));
    inputs_ = addresses_at(memory_.address(), inputs);
    outputs_ = addresses_at(memory_.address(), outputs);
    steps_.set(Plan::Slot::Kind::arena, addresses_at(memory_.address(), arena));
    steps_.set(Plan::Slot::Kind::input, inputs_);
    steps_.set(Plan::Slot::Kind::output, outputs_);
    return {};
  }
  void set_array(uint32_t, void *) override {}  // run() is told all of them
  void set_prepared(const Prepared &prepared) override { steps_.set(prepared); }
  Status run(std::span<void *const> arrays) override {
    const Status given = give_run(arrays);
    // Also after a failure: what was given may still read and write the host's arrays.
    Status finished = finish(steps_, *queue_);
    return given.ok() ? finished : given;
  }
  uint64_t size_bytes() const override { return memory_.size_bytes(); }

 private:
  Status give_run(std::span<void *const> arrays) {
    const auto bytes = [&](uint32_t slot) { return sizes_.argument(slot).span_bytes; };
    for (uint32_t i = 0; i < inputs_.size(); ++i)
      KILN_TRY(queue_->copy_in(device_address(inputs_[i]), arrays[i], bytes(i)));
    KILN_TRY(give(steps_, *queue_, *program_));
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      const uint32_t slot = signature_.outputs().begin + i;
      KILN_TRY(queue_->copy_out(arrays[slot], device_address(outputs_[i]), bytes(slot)));
    }
    for (uint32_t i : executable_.plan().written_inputs)
      KILN_TRY(queue_->copy_out(arrays[i], device_address(inputs_[i]), bytes(i)));
    return {};
  }

  const Executable &executable_;
  const Signature &signature_;
  const ResolvedSizes &sizes_;
  const std::shared_ptr<const DeviceProgram> program_;
  const std::shared_ptr<DeviceQueue> queue_;
  DeviceMemory memory_;
  ReadySteps steps_;
  std::vector<void *> inputs_, outputs_;  // where they are on the device
};

}  // namespace

Result<std::shared_ptr<const DeviceProgram>> DevicePlace::program() const {
  const std::lock_guard lock(mutex_);
  if (program_) return program_;
  if (!open_) return error(Code::no_device, "nothing was given that opens a device of ", artifact_.backend);
  KILN_ASSIGN(std::shared_ptr<Device> device, open_());
  KILN_ASSIGN(program_, DeviceProgram::load(std::move(device), artifact_));
  return program_;
}

Result<std::unique_ptr<Runner>> DevicePlace::make_runner(const Executable &executable, const Signature &signature,
                                                         const ResolvedSizes &sizes) const {
  KILN_ASSIGN(std::shared_ptr<const DeviceProgram> loaded, program());
  KILN_ASSIGN(std::shared_ptr<DeviceQueue> queue, DeviceQueue::open(loaded->device()));
  KILN_TRY(queue->follow(loaded->uploads()));
  return std::unique_ptr<Runner>(
      std::make_unique<DeviceRunner>(executable, std::move(loaded), std::move(queue), signature, sizes));
}

Result<Prepared> DevicePlace::prepare(const Executable &executable, const Signature &signature,
                                      const ResolvedSizes &sizes, std::span<void *const> parameters) const {
  KILN_ASSIGN(const std::shared_ptr<const DeviceProgram> loaded, program());
  KILN_ASSIGN(std::shared_ptr<DeviceQueue> queue, DeviceQueue::open(loaded->device()));
  const auto memory = std::make_shared<DeviceMemory>(queue);
  Layout layout(block_alignment);
  const std::vector<uint64_t> uploaded = layout.add(sizes.bytes(signature.parameters()));
  const std::vector<uint64_t> storages = layout.add(sizes.bytes(executable.sizes().prepared));
  KILN_TRY(memory->grow(layout.size_bytes(), "parameters"));
  Prepared prepared{.parameters = addresses_at(memory->address(), uploaded),
                    .storages = addresses_at(memory->address(), storages),
                    .size_bytes = memory->size_bytes(),
                    .memory = memory};
  for (uint32_t p = 0; p < parameters.size(); ++p) {
    const uint64_t bytes = sizes.argument(signature.parameters().begin + p).span_bytes;
    KILN_TRY(queue->copy_in(device_address(prepared.parameters[p]), parameters[p], bytes));
  }

  ReadySteps steps(executable, executable.plan().prepare, executable.sizes().prepare);
  KILN_TRY(steps.resolve(sizes));
  set_constants(*loaded, steps);
  steps.set(prepared);
  KILN_TRY(queue->follow(loaded->uploads()));
  KILN_TRY(give(steps, *queue, *loaded));
  KILN_TRY(finish(steps, *queue));
  return prepared;
}

}  // namespace kiln
