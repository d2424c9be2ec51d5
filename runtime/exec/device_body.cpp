#include "runtime/exec/device_body.h"

#include "runtime/exec/device_steps.h"
#include "runtime/exec/layout.h"

namespace kiln {

std::vector<void *> addresses_at(uint64_t block, std::span<const uint64_t> offsets) {
  std::vector<void *> addresses;
  for (uint64_t offset : offsets) addresses.push_back(reinterpret_cast<void *>(static_cast<uintptr_t>(block + offset)));
  return addresses;
}

DeviceBody::DeviceBody(DeviceRun &shared, PlanPart part, const Signature &signature, ResolvedSizes &sizes,
                       LoopWatch &watch)
    : Body(part, signature, sizes, watch),
      shared_(shared),
      memory_(shared.queue),
      steps_(part.plan, part.numbers, part.plan.steps, part.numbers.steps) {
  set_constants(*shared.program, steps_);
  make_all_nested();
}

std::unique_ptr<Body> DeviceBody::make_nested(PlanPart part, const Signature &signature, ResolvedSizes &sizes) {
  return std::make_unique<DeviceBody>(shared_, part, signature, sizes, watch_);
}

Status DeviceBody::place_memory() {
  Layout layout(device_alignment);
  const std::vector<uint64_t> arena = layout.add(sizes_.bytes(part_.numbers.arena));
  const uint64_t flag = layout.add(1);
  KILN_TRY(memory_.grow(layout.size_bytes(), "arena"));
  steps_.set(Plan::Slot::Kind::arena, addresses_at(memory_.address(), arena));
  flag_ = addresses_at(memory_.address(), {&flag, 1})[0];
  return {};
}

Status DeviceBody::run() {
  sizes_.begin_run();
  const auto run_other = [this](size_t step) { return run_control(step); };
  if (!watch_.times_steps()) return give(steps_, *shared_.queue, *shared_.program, run_other);
  StepClock clock(watch_, part_.plan, sizes_.symbols());
  return give(steps_, *shared_.queue, *shared_.program, run_other, [&](size_t step) {
    drain();
    return clock.ended(step);
  });
}

Status DeviceBody::finish() {
  KILN_ASSIGN(const uint32_t bits, shared_.queue->finish());
  const uint32_t all = std::exchange(shared_.error_bits, 0) | bits;
  return all == 0 ? Status() : steps_.error_of(all);
}

void DeviceBody::drain() {
  if (const Result<uint32_t> bits = shared_.queue->finish(); bits.ok()) shared_.error_bits |= *bits;
}

Status DeviceBody::copy(void *to, const void *from, uint64_t bytes) {
  return shared_.queue->copy(device_address(to), device_address(from), bytes);
}

Status DeviceBody::read(void *to, const void *from, uint64_t bytes) {
  KILN_TRY(shared_.queue->copy_out(to, device_address(from), bytes));
  KILN_ASSIGN(const uint32_t bits, shared_.queue->finish());
  shared_.error_bits |= bits;
  return {};
}

}  // namespace kiln
