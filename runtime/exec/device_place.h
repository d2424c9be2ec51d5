// A device as a place. The host's arrays stay where they are: inputs are copied in at each run, outputs copied out,
// parameters uploaded once per binding.
#pragma once
#include <memory>
#include <mutex>

#include "runtime/exec/device.h"
#include "runtime/exec/place.h"
#include "runtime/plan/artifact.h"

namespace kiln {

class DevicePlace final : public Place {
 public:
  // Opens nothing: kernels and constants are loaded by the first who makes a runner. The artifact outlives this.
  DevicePlace(const Artifact &artifact, OpenDevice open) : artifact_(artifact), open_(std::move(open)) {}

  Result<std::unique_ptr<Runner>> make_runner(const Executable &executable, const Signature &signature,
                                              ResolvedSizes &sizes, LoopWatch &watch) const override;
  Result<Prepared> prepare(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes,
                           std::span<void *const> parameters) const override;

 private:
  Result<std::shared_ptr<const DeviceProgram>> program() const;

  const Artifact &artifact_;
  const OpenDevice open_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const DeviceProgram> program_;  // null: not loaded yet
};

}  // namespace kiln
