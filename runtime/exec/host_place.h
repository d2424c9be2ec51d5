// This processor as a place: machine code mapped executable, called on the context's thread pool.
#pragma once
#include <memory>
#include <vector>

#include "jit/base/kernel_args.h"
#include "runtime/exec/image_memory.h"
#include "runtime/exec/place.h"
#include "runtime/plan/artifact.h"

namespace kiln {

class HostPlace final : public Place {
 public:
  // Maps the artifact's images, where they hold code that this processor runs. code incompatible: the target is none.
  static Result<std::unique_ptr<const Place>> load(const Artifact &artifact);
  Status check() const override { return fits_; }

  Result<std::unique_ptr<Runner>> make_runner(const Executable &executable, const Signature &signature,
                                              ResolvedSizes &sizes, LoopWatch &watch, uint32_t device) const override;
  Result<Prepared> prepare(const Executable &executable, const Signature &signature, const ResolvedSizes &sizes,
                           std::span<const ParameterArray> parameters, uint32_t device, PreparedParts &parts,
                           bool parts_alone) const override;

 private:
  Status map(const Artifact &artifact);
  Status run_prepare(const Executable &executable, const ResolvedSizes &sizes, std::vector<uint32_t> numbers,
                     const Prepared &prepared) const;

  Status fits_;
  ImageMemory memory_;
  std::vector<kiln_kernel_fn> kernels_;
};

}  // namespace kiln
