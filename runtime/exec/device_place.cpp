#include "runtime/exec/device_place.h"

#include <algorithm>

#include "runtime/exec/device_body.h"
#include "runtime/exec/device_steps.h"
#include "runtime/exec/layout.h"

namespace kiln {
namespace {

class DeviceRunner final : public Runner {
 public:
  DeviceRunner(const Executable &executable, std::shared_ptr<const DeviceProgram> program,
               std::shared_ptr<DeviceQueue> queue, const Signature &signature, ResolvedSizes &sizes, LoopWatch &watch)
      : executable_(executable),
        signature_(signature),
        sizes_(sizes),
        shared_{std::move(program), std::move(queue)},
        memory_(shared_.queue),
        body_(shared_, {executable.plan(), executable.sizes()}, signature, sizes, watch) {}

  Status place() override {
    KILN_TRY(body_.place());
    Layout layout(device_alignment);
    const std::vector<uint64_t> inputs = layout.add(sizes_.bytes(signature_.inputs()));
    const std::vector<uint64_t> outputs = layout.add(sizes_.bytes(signature_.outputs()));
    KILN_TRY(memory_.grow(layout.size_bytes(), "inputs and outputs"));
    inputs_ = addresses_at(memory_.address(), inputs);
    outputs_ = addresses_at(memory_.address(), outputs);
    for (uint32_t i = 0; i < inputs_.size(); ++i) body_.set_array(i, inputs_[i]);
    for (uint32_t i = 0; i < outputs_.size(); ++i) body_.set_array(signature_.outputs().begin + i, outputs_[i]);
    return {};
  }
  void set_array(uint32_t, void *) override {}  // run() is told all of them
  void set_prepared(const Prepared &prepared) override { body_.set_prepared(prepared); }
  Status run(std::span<void *const> arrays) override {
    const Status given = give_run(arrays);
    // Also after a failure: what was given may still read and write the host's arrays.
    Status finished = body_.finish();
    return given.ok() ? finished : given;
  }
  uint64_t size_bytes() const override { return memory_.size_bytes() + body_.size_bytes(); }

 private:
  Status give_run(std::span<void *const> arrays) {
    DeviceQueue &queue = *shared_.queue;
    const auto bytes = [&](uint32_t slot) { return sizes_.argument(slot).span_bytes; };
    for (uint32_t i = 0; i < inputs_.size(); ++i)
      KILN_TRY(queue.copy_in(device_address(inputs_[i]), arrays[i], bytes(i)));
    KILN_TRY(body_.run());
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      const uint32_t slot = signature_.outputs().begin + i;
      if (sizes_.argument(slot).made) KILN_TRY(queue.copy_out(arrays[slot], device_address(outputs_[i]), bytes(slot)));
    }
    for (uint32_t i : executable_.plan().written_inputs)
      KILN_TRY(queue.copy_out(arrays[i], device_address(inputs_[i]), bytes(i)));
    return {};
  }

  const Executable &executable_;
  const Signature &signature_;
  ResolvedSizes &sizes_;
  DeviceRun shared_;
  DeviceMemory memory_;  // of inputs and outputs
  DeviceBody body_;
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
                                                         ResolvedSizes &sizes, LoopWatch &watch) const {
  KILN_ASSIGN(std::shared_ptr<const DeviceProgram> loaded, program());
  KILN_ASSIGN(std::shared_ptr<DeviceQueue> queue, DeviceQueue::open(loaded->device()));
  KILN_TRY(queue->follow(loaded->uploads()));
  return std::unique_ptr<Runner>(
      std::make_unique<DeviceRunner>(executable, std::move(loaded), std::move(queue), signature, sizes, watch));
}

Result<Prepared> DevicePlace::prepare(const Executable &executable, const Signature &signature,
                                      const ResolvedSizes &sizes, std::span<void *const> parameters) const {
  KILN_ASSIGN(const std::shared_ptr<const DeviceProgram> loaded, program());
  KILN_ASSIGN(std::shared_ptr<DeviceQueue> queue, DeviceQueue::open(loaded->device()));
  const auto memory = std::make_shared<DeviceMemory>(queue);
  Layout layout(device_alignment);
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

  const Plan &plan = executable.plan();
  ReadySteps steps(plan, executable.sizes(), plan.prepare, executable.sizes().prepare);
  KILN_TRY(steps.resolve(sizes));
  set_constants(*loaded, steps);
  steps.set(prepared);
  KILN_TRY(queue->follow(loaded->uploads()));
  KILN_TRY(give(steps, *queue, *loaded, [](size_t) { return error(Code::internal, "prepare runs kernels alone"); }));
  KILN_ASSIGN(const uint32_t error_bits, queue->finish());
  if (error_bits) return error(Code::out_of_range, steps.error_text(error_bits));
  return prepared;
}

}  // namespace kiln
