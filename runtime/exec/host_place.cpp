#include "runtime/exec/host_place.h"

#include "jit/base/target.h"
#include "runtime/exec/host_body.h"
#include "runtime/exec/host_steps.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/perf_map.h"

namespace kiln {
namespace {

// The kernels work on the host's arrays where they are.
class HostRunner final : public Runner {
 public:
  HostRunner(const Executable &executable, std::span<const kiln_kernel_fn> kernels, const Signature &signature,
             ResolvedSizes &sizes, LoopWatch &watch)
      : body_(executable, kernels, {executable.plan(), executable.sizes()}, signature, sizes, watch) {}

  Status place() override { return body_.place(); }
  void set_array(uint32_t slot, void *data) override { body_.set_array(slot, data); }
  void set_prepared(const Prepared &prepared) override { body_.set_prepared(prepared); }
  Status run(std::span<void *const>) override { return body_.run(); }
  uint64_t size_bytes() const override { return body_.size_bytes(); }

 private:
  HostBody body_;
};

}  // namespace

Result<std::unique_ptr<const Place>> HostPlace::load(const Artifact &artifact) {
  auto place = std::make_unique<HostPlace>();
  if (!artifact.images.empty()) KILN_TRY(place->map(artifact));
  return std::unique_ptr<const Place>(std::move(place));
}

Status HostPlace::map(const Artifact &artifact) {
  const Result<Target> target = Target::by_name(artifact.target);
  if (!target.ok()) return error(Code::incompatible, "the artifact's target: ", target.status().message());
  KILN_TRY(target->check_host());
  if (!has_code(artifact)) return {};
  const std::string name = str_cat("kiln-", artifact.graph_key.hex().substr(0, 16));
  KILN_ASSIGN(const bool for_perf, perf_map_wanted());
  KILN_ASSIGN(memory_, ImageMemory::load(artifact.images, name, for_perf));
  if (for_perf) write_perf_map(memory_, artifact.images, name);
  for (size_t i = 0; i < artifact.images.size(); ++i)
    kernels_.push_back(reinterpret_cast<kiln_kernel_fn>(reinterpret_cast<uintptr_t>(memory_.entry(i))));
  return {};
}

Result<std::unique_ptr<Runner>> HostPlace::make_runner(const Executable &executable, const Signature &signature,
                                                       ResolvedSizes &sizes, LoopWatch &watch) const {
  return std::unique_ptr<Runner>(std::make_unique<HostRunner>(executable, kernels_, signature, sizes, watch));
}

Result<Prepared> HostPlace::prepare(const Executable &executable, const Signature &, const ResolvedSizes &sizes,
                                    std::span<void *const> parameters) const {
  const auto memory = std::make_shared<Areas>();
  KILN_TRY(memory->resize(sizes.bytes(executable.sizes().prepared), "prepared parameters"));
  const Prepared prepared{.parameters = {parameters.begin(), parameters.end()},
                          .storages = memory->addresses(),
                          .size_bytes = memory->size_bytes(),
                          .memory = memory};

  const Plan &plan = executable.plan();
  HostSteps steps(executable, kernels_, plan, executable.sizes(), plan.prepare, executable.sizes().prepare);
  KILN_TRY(steps.ready().resolve(sizes));
  KILN_TRY(steps.place_scratch());
  steps.ready().set(prepared);
  KILN_TRY(steps.run([](size_t) { return error(Code::internal, "prepare runs kernels alone"); }));
  return prepared;
}

}  // namespace kiln
