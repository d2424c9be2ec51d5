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
               std::shared_ptr<DeviceQueue> queue, const Signature &signature, ResolvedSizes &sizes, LoopWatch &watch,
               int32_t device_type)
      : executable_(executable),
        device_type_(device_type),
        signature_(signature),
        sizes_(sizes),
        watch_(watch),
        shared_{std::move(program), std::move(queue)},
        memory_(shared_.queue),
        body_(shared_, {executable.plan(), executable.sizes()}, signature, sizes, watch),
        given_(signature.count()) {}

  Status place() override {
    is_placed_ = false;
    return body_.place();
  }
  ArrayPlace own_place() const override {
    return {device_type_, static_cast<int32_t>(shared_.program->device()->index())};
  }
  void set_array(uint32_t slot, void *data, bool in_own_place) override {
    void *const given = in_own_place ? data : nullptr;
    if (given_[slot].data == given && given_[slot].is_own == in_own_place) return;
    given_[slot] = {given, in_own_place};
    is_placed_ = false;
  }
  void set_prepared(const Prepared &prepared) override { body_.set_prepared(prepared); }
  Status run(std::span<void *const> arrays) override {
    const Status given = give_run(arrays);
    // Also after a failure: what was given may still read and write the host's arrays.
    Status finished = body_.finish();
    return given.ok() ? finished : given;
  }
  Status start(std::span<void *const> arrays, uint64_t stream) override {
    if (stream) KILN_TRY(shared_.queue->enter(stream));
    Status given = give_run(arrays);
    // Whatever the stream is given next may read what a part of the run has written.
    Status left = stream ? shared_.queue->leave(stream) : Status();
    if (given.ok()) given = std::move(left);
    if (!given.ok()) body_.drain();
    return given;
  }
  bool queues() const override { return true; }
  Result<bool> is_over() override { return shared_.queue->is_over(); }
  Status finish() override { return body_.finish(); }
  uint64_t size_bytes() const override { return memory_.size_bytes() + body_.size_bytes(); }

 private:
  // Where steps find inputs and outputs: those that are not here have their places in one block.
  Status place_arrays() {
    Layout layout(device_alignment);
    std::vector<uint64_t> offsets(given_.size());
    const auto add = [&](SlotRange slots) {
      const std::vector<uint64_t> bytes = sizes_.bytes(slots);
      for (uint32_t slot = slots.begin; slot < slots.end; ++slot)
        if (!given_[slot].is_own) offsets[slot] = layout.add(bytes[slot - slots.begin]);
    };
    add(signature_.inputs());
    add(signature_.outputs());
    KILN_TRY(memory_.grow(layout.size_bytes(), "inputs and outputs"));
    places_ = addresses_at(memory_.address(), offsets);
    for (uint32_t slot = 0; slot < places_.size(); ++slot) {
      if (given_[slot].is_own) places_[slot] = given_[slot].data;
      if (!signature_.parameters().contains(slot)) body_.set_array(slot, places_[slot]);
    }
    is_placed_ = true;
    return {};
  }

  Status give_run(std::span<void *const> arrays) {
    watch_.begin_run();
    if (!is_placed_) KILN_TRY(place_arrays());
    DeviceQueue &queue = *shared_.queue;
    const auto bytes = [&](uint32_t slot) { return sizes_.argument(slot).span_bytes; };
    for (uint32_t i = 0; i < signature_.inputs().end; ++i)
      if (!given_[i].is_own) KILN_TRY(queue.copy_in(device_address(places_[i]), arrays[i], bytes(i)));
    KILN_TRY(body_.run());
    for (uint32_t slot = signature_.outputs().begin; slot < signature_.outputs().end; ++slot) {
      if (!sizes_.argument(slot).made || given_[slot].is_own) continue;
      KILN_TRY(queue.copy_out(arrays[slot], device_address(places_[slot]), bytes(slot)));
    }
    for (uint32_t i : executable_.plan().written_inputs)
      if (!given_[i].is_own) KILN_TRY(queue.copy_out(arrays[i], device_address(places_[i]), bytes(i)));
    return {};
  }

  const Executable &executable_;
  const int32_t device_type_;
  const Signature &signature_;
  ResolvedSizes &sizes_;
  LoopWatch &watch_;
  DeviceRun shared_;
  DeviceMemory memory_;  // of inputs and outputs that are the host's
  DeviceBody body_;
  struct Given {
    void *data = nullptr;  // on the device
    bool is_own = false;   // it is there
  };
  std::vector<Given> given_;    // by slot
  std::vector<void *> places_;  // by slot: where they are on the device
  bool is_placed_ = false;      // for the sizes and arrays at hand
};

}  // namespace

Result<std::shared_ptr<const DeviceProgram>> DevicePlace::program(uint32_t device) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = programs_.find(device); known != programs_.end()) return known->second;
  if (!open_) return error(Code::no_device, "nothing was given that opens a device of ", artifact_.backend);
  KILN_ASSIGN(std::shared_ptr<Device> opened, open_(device));
  KILN_ASSIGN(std::shared_ptr<const DeviceProgram> loaded, DeviceProgram::load(std::move(opened), artifact_));
  return programs_.emplace(device, std::move(loaded)).first->second;
}

Result<std::unique_ptr<Runner>> DevicePlace::make_runner(const Executable &executable, const Signature &signature,
                                                         ResolvedSizes &sizes, LoopWatch &watch,
                                                         uint32_t device) const {
  KILN_ASSIGN(std::shared_ptr<const DeviceProgram> loaded, program(device));
  KILN_ASSIGN(std::shared_ptr<DeviceQueue> queue, DeviceQueue::open(loaded->device()));
  KILN_TRY(queue->follow(loaded->uploads()));
  return std::unique_ptr<Runner>(std::make_unique<DeviceRunner>(executable, std::move(loaded), std::move(queue),
                                                                signature, sizes, watch, device_type_));
}

Result<Prepared> DevicePlace::prepare(const Executable &executable, const Signature &signature,
                                      const ResolvedSizes &sizes, std::span<const ParameterArray> parameters,
                                      uint32_t device, PreparedParts &, bool parts_alone) const {
  if (parts_alone) return Prepared();  // it has none
  KILN_ASSIGN(const std::shared_ptr<const DeviceProgram> loaded, program(device));
  KILN_ASSIGN(std::shared_ptr<DeviceQueue> queue, DeviceQueue::open(loaded->device()));
  const auto memory = std::make_shared<DeviceMemory>(queue);
  Layout layout(device_alignment);
  std::vector<uint64_t> bytes = sizes.bytes(signature.parameters());
  for (size_t p = 0; p < bytes.size(); ++p)
    if (!parameters[p].place.is_host()) bytes[p] = 0;
  const std::vector<uint64_t> uploaded = layout.add(bytes);
  const std::vector<uint64_t> storages = layout.add(sizes.bytes(executable.sizes().prepared));
  KILN_TRY(memory->grow(layout.size_bytes(), "parameters"));
  Prepared prepared{.parameters = addresses_at(memory->address(), uploaded),
                    .storages = addresses_at(memory->address(), storages),
                    .size_bytes = memory->size_bytes(),
                    .memory = {memory}};
  for (uint32_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p].place.is_host())
      prepared.parameters[p] = parameters[p].data;
    else
      KILN_TRY(queue->copy_in(device_address(prepared.parameters[p]), parameters[p].data, bytes[p]));
  }

  const Plan &plan = executable.plan();
  ReadySteps steps(plan, executable.sizes(), plan.prepare, executable.sizes().prepare);
  KILN_TRY(steps.resolve(sizes));
  set_constants(*loaded, steps);
  steps.set(prepared);
  KILN_TRY(queue->follow(loaded->uploads()));
  KILN_TRY(give(steps, *queue, *loaded, [](size_t) { return error(Code::internal, "prepare runs kernels alone"); }));
  KILN_ASSIGN(const uint32_t error_bits, queue->finish());
  if (error_bits) return steps.error_of(error_bits);
  return prepared;
}

}  // namespace kiln
