// A device as a place. Arrays in its memory are used where they are. The host's stay where they are: inputs are copied
// in at each run, outputs copied out, parameters uploaded once per binding.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "runtime/exec/device.h"
#include "runtime/exec/place.h"
#include "runtime/plan/artifact.h"

namespace kiln {

class DevicePlace final : public Place {
 public:
  // Opens nothing: kernels and constants are loaded by the first who makes a runner. The artifact outlives this.
  // `device_type`: DLPack's, of its memory.
  DevicePlace(const Artifact &artifact, int32_t device_type, OpenDevice open)
      : artifact_(artifact), device_type_(device_type), open_(std::move(open)) {}

  Result<std::unique_ptr<Runner>> make_runner(const Executable &executable, const Signature &signature,
                                              ResolvedSizes &sizes, LoopWatch &watch, uint32_t device) const override;
  Result<Prepared> prepare(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes,
                           std::span<const ParameterArray> parameters, uint32_t device, PreparedParts &parts,
                           bool parts_alone) const override;

 private:
  Result<std::shared_ptr<const DeviceProgram>> program(uint32_t device) const;

  const Artifact &artifact_;
  const int32_t device_type_;
  const OpenDevice open_;
  mutable std::mutex mutex_;
  mutable std::map<uint32_t, std::shared_ptr<const DeviceProgram>> programs_;  // that are loaded, by device
};

}  // namespace kiln
