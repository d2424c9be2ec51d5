// A plan being run on a device: its steps are given to a queue, which is waited for where a step depends on a value.
#pragma once
#include <memory>
#include <span>

#include "runtime/exec/body.h"
#include "runtime/exec/device.h"

namespace kiln {

// What the bodies of one call share.
struct DeviceRun {
  std::shared_ptr<const DeviceProgram> program;
  std::shared_ptr<DeviceQueue> queue;
  uint32_t error_bits = 0;  // KILN_ERROR_*, of the kernels that were waited for
};

constexpr uint64_t device_alignment = 256;  // bytes: of all that lies in one block of the device's memory

// What lies at these offsets of a block, as kernels take addresses.
std::vector<void *> addresses_at(uint64_t block, std::span<const uint64_t> offsets);
inline uint64_t device_address(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); }

class DeviceBody final : public Body {
 public:
  DeviceBody(DeviceRun &shared, PlanPart part, const Signature &signature, ResolvedSizes &sizes, LoopWatch &watch);

  void set_prepared(const Prepared &prepared) { steps_.set(prepared); }
  // Gives all steps to the queue, waiting for it only where it must.
  Status run() override;
  // Waits, and tells what kernels of this plan or of nested ones found.
  Status finish();
  // Waits; what kernels found is told by the next finish.
  void drain();

 private:
  std::unique_ptr<Body> make_nested(PlanPart part, const Signature &signature, ResolvedSizes &sizes) override;
  ReadySteps &ready() override { return steps_; }
  Status place_memory() override;
  uint64_t own_bytes() const override { return memory_.size_bytes(); }
  Status copy(void *to, const void *from, uint64_t bytes) override;
  Status read(void *to, const void *from, uint64_t bytes) override;
  void *flag() override { return flag_; }

  DeviceRun &shared_;
  DeviceMemory memory_;
  ReadySteps steps_;
  void *flag_ = nullptr;
};

}  // namespace kiln
