// What a call and its parameters hold on a device. The host's arrays stay where they are: inputs are copied in at each
// run, outputs copied out, parameters uploaded once per binding.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/exec/device.h"
#include "runtime/exec/signature.h"
#include "runtime/exec/steps.h"

namespace kiln {

// The parameters on the device, and what `prepare` made of them. Made once per binding; then read by any call.
class DeviceParameters {
 public:
  // Uploads `parameters` (their host addresses, in order) and runs the plan's prepare steps.
  static Result<std::unique_ptr<DeviceParameters>> make(const Executable &executable,
                                                        std::shared_ptr<const DeviceProgram> program,
                                                        const ResolvedSizes &sizes, std::span<void *const> parameters);
  // Into the plan's parameter and prepared slots of `steps`.
  void place(const Plan &plan, ReadySteps &steps) const;
  uint64_t size_bytes() const { return memory_.size_bytes(); }

 private:
  explicit DeviceParameters(std::shared_ptr<DeviceQueue> queue) : queue_(std::move(queue)), memory_(queue_) {}
  const std::shared_ptr<DeviceQueue> queue_;
  DeviceMemory memory_;
  std::vector<uint64_t> parameters_, prepared_;  // addresses
};

// One call's memory and queue. One thread at a time, as the call.
class DeviceCall {
 public:
  static Result<std::unique_ptr<DeviceCall>> make(std::shared_ptr<const DeviceProgram> program, const Plan &plan,
                                                  ReadySteps &steps);
  // Memory for the arena, inputs and outputs at these sizes, into the slots of `steps`.
  Status place(const Executable &executable, const ResolvedSizes &sizes, ReadySteps &steps);
  // `arrays`: the host's, by slot of the signature. Returns when the outputs are there, also when a kernel found an
  // error.
  Status run(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes,
             std::span<void *const> arrays, ReadySteps &steps);
  uint64_t size_bytes() const { return memory_.size_bytes(); }
  const std::shared_ptr<const DeviceProgram> &program() const { return program_; }

 private:
  DeviceCall(std::shared_ptr<const DeviceProgram> program, std::shared_ptr<DeviceQueue> queue)
      : program_(std::move(program)), queue_(std::move(queue)), memory_(queue_) {}
  const std::shared_ptr<const DeviceProgram> program_;
  const std::shared_ptr<DeviceQueue> queue_;
  DeviceMemory memory_;
  std::vector<uint64_t> inputs_, outputs_;  // addresses
};

}  // namespace kiln
