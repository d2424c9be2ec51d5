#include "runtime/exec/device_call.h"

#include <algorithm>

#include "runtime/exec/device_layout.h"

namespace kiln {
namespace {

// Offsets of blocks of these sizes, added to `layout`.
std::vector<uint64_t> lay_out(std::span<const uint32_t> size_numbers, const ResolvedSizes &sizes,
                              DeviceLayout &layout) {
  std::vector<uint64_t> offsets;
  for (uint32_t number : size_numbers)
    offsets.push_back(layout.add(static_cast<uint64_t>(std::max<int64_t>(sizes[number], 0))));
  return offsets;
}

// Offsets of the arguments of a range of the signature.
std::vector<uint64_t> lay_out(SlotRange range, const ResolvedSizes &sizes, DeviceLayout &layout) {
  std::vector<uint64_t> offsets;
  for (uint32_t slot = range.begin; slot < range.end; ++slot)
    offsets.push_back(layout.add(sizes.argument(slot).span_bytes));
  return offsets;
}

void move_by(std::vector<uint64_t> &offsets, uint64_t base) {
  for (uint64_t &offset : offsets) offset += base;
}

// Puts addresses[slot.index] into the plan's slots of one kind.
void set_slots(const Plan &plan, Plan::Slot::Kind kind, std::span<const uint64_t> addresses, ReadySteps &steps) {
  for (uint32_t slot = 0; slot < plan.slots.size(); ++slot)
    if (plan.slots[slot].kind == kind)
      steps.set(slot, reinterpret_cast<void *>(static_cast<uintptr_t>(addresses[plan.slots[slot].index])));
}

void set_constants(const Plan &plan, const DeviceProgram &program, ReadySteps &steps) {
  set_slots(plan, Plan::Slot::Kind::constant, program.constants(), steps);
}

}  // namespace

Result<std::unique_ptr<DeviceParameters>> DeviceParameters::make(const Executable &executable,
                                                                 std::shared_ptr<const DeviceProgram> program,
                                                                 const ResolvedSizes &sizes,
                                                                 std::span<void *const> parameters) {
  const Plan &plan = executable.plan();
  const PlanSizes &numbers = executable.sizes();
  KILN_ASSIGN(std::shared_ptr<DeviceQueue> queue, DeviceQueue::open(program->device()));
  std::unique_ptr<DeviceParameters> made(new DeviceParameters(queue));
  const auto first = static_cast<uint32_t>(plan.inputs.size());
  DeviceLayout layout;
  made->parameters_ = lay_out(SlotRange{first, first + static_cast<uint32_t>(parameters.size())}, sizes, layout);
  made->prepared_ = lay_out(numbers.prepared, sizes, layout);
  KILN_TRY(made->memory_.grow(layout.size_bytes(), "parameters"));
  move_by(made->parameters_, made->memory_.address());
  move_by(made->prepared_, made->memory_.address());
  for (uint32_t p = 0; p < parameters.size(); ++p)
    KILN_TRY(queue->copy_in(made->parameters_[p], parameters[p], sizes.argument(first + p).span_bytes));

  ReadySteps steps(executable, plan.prepare, numbers.prepare);
  KILN_TRY(steps.resolve(sizes));
  set_constants(plan, *program, steps);
  made->place(plan, steps);
  KILN_TRY(queue->follow(program->uploads()));
  KILN_TRY(steps.give_to(*queue, *program));
  KILN_TRY(steps.finish(*queue));
  return made;
}

void DeviceParameters::place(const Plan &plan, ReadySteps &steps) const {
  set_slots(plan, Plan::Slot::Kind::parameter, parameters_, steps);
  set_slots(plan, Plan::Slot::Kind::prepared, prepared_, steps);
}

Result<std::unique_ptr<DeviceCall>> DeviceCall::make(std::shared_ptr<const DeviceProgram> program, const Plan &plan,
                                                     ReadySteps &steps) {
  KILN_ASSIGN(std::shared_ptr<DeviceQueue> queue, DeviceQueue::open(program->device()));
  KILN_TRY(queue->follow(program->uploads()));
  set_constants(plan, *program, steps);
  return std::unique_ptr<DeviceCall>(new DeviceCall(std::move(program), std::move(queue)));
}

Status DeviceCall::place(const Executable &executable, const ResolvedSizes &sizes, ReadySteps &steps) {
  const Plan &plan = executable.plan();
  const auto inputs = static_cast<uint32_t>(plan.inputs.size());
  const uint32_t first_output = inputs + static_cast<uint32_t>(plan.parameters.size());
  DeviceLayout layout;
  std::vector<uint64_t> arena = lay_out(executable.sizes().arena, sizes, layout);
  inputs_ = lay_out(SlotRange{0, inputs}, sizes, layout);
  outputs_ = lay_out(SlotRange{first_output, first_output + static_cast<uint32_t>(plan.outputs.size())}, sizes, layout);
  KILN_TRY(memory_.grow(layout.size_bytes(), "arena"));
  for (auto *offsets : {&arena, &inputs_, &outputs_}) move_by(*offsets, memory_.address());
  set_slots(plan, Plan::Slot::Kind::arena, arena, steps);
  set_slots(plan, Plan::Slot::Kind::input, inputs_, steps);
  set_slots(plan, Plan::Slot::Kind::output, outputs_, steps);
  return {};
}

Status DeviceCall::run(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes,
                       std::span<void *const> arrays, ReadySteps &steps) {
  const auto bytes = [&](uint32_t slot) { return sizes.argument(slot).span_bytes; };
  const auto work = [&]() -> Status {
    for (uint32_t i = 0; i < inputs_.size(); ++i) KILN_TRY(queue_->copy_in(inputs_[i], arrays[i], bytes(i)));
    KILN_TRY(steps.give_to(*queue_, *program_));
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      const uint32_t slot = signature.outputs().begin + i;
      KILN_TRY(queue_->copy_out(arrays[slot], outputs_[i], bytes(slot)));
    }
    for (uint32_t i : executable.plan().written_inputs) KILN_TRY(queue_->copy_out(arrays[i], inputs_[i], bytes(i)));
    return {};
  };
  const Status given = work();
  // Also after a failure: what was given may still read and write the host's arrays.
  Status finished = steps.finish(*queue_);
  return given.ok() ? finished : given;
}

}  // namespace kiln
