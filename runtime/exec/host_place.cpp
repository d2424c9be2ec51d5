#include "runtime/exec/host_place.h"

#include "jit/base/target.h"
#include "runtime/exec/host_steps.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/perf_map.h"
#include "runtime/exec/reference_step.h"

namespace kiln {
namespace {

// The kernels work on the host's arrays where they are.
class HostRunner final : public Runner {
 public:
  HostRunner(const Executable &executable, std::span<const kiln_kernel_fn> kernels, const Signature &signature,
             const ResolvedSizes &sizes)
      : executable_(executable),
        signature_(signature),
        sizes_(sizes),
        steps_(executable, kernels, executable.plan().steps, executable.sizes().steps),
        plan_slots_(signature.count()) {
    const std::vector<Plan::Slot> &slots = executable.plan().slots;
    for (uint32_t i = 0; i < slots.size(); ++i) {
      if (slots[i].kind == Plan::Slot::Kind::input) plan_slots_[slots[i].index].push_back(i);
      if (slots[i].kind == Plan::Slot::Kind::output)
        plan_slots_[signature.outputs().begin + slots[i].index].push_back(i);
    }
  }

  Status place() override {
    KILN_TRY(steps_.resolve(sizes_));
    KILN_TRY(arena_.resize(sizes_.bytes(executable_.sizes().arena), "arena"));
    steps_.ready().set(Plan::Slot::Kind::arena, arena_.addresses());
    return {};
  }
  void set_array(uint32_t slot, void *data) override {
    for (uint32_t plan_slot : plan_slots_[slot]) steps_.ready().set(plan_slot, data);
  }
  void set_prepared(const Prepared &prepared) override { steps_.ready().set(prepared); }
  Status run(std::span<void *const> arrays) override {
    return steps_.run([&] { return run_reference_step(executable_, signature_, sizes_, arrays); });
  }
  uint64_t size_bytes() const override { return arena_.size_bytes() + steps_.scratch_bytes(); }

 private:
  const Executable &executable_;
  const Signature &signature_;
  const ResolvedSizes &sizes_;
  HostSteps steps_;
  std::vector<std::vector<uint32_t>> plan_slots_;  // of each input and output of the signature
  Areas arena_;
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
                                                       const ResolvedSizes &sizes) const {
  return std::unique_ptr<Runner>(std::make_unique<HostRunner>(executable, kernels_, signature, sizes));
}

Result<Prepared> HostPlace::prepare(const Executable &executable, const Signature &, const ResolvedSizes &sizes,
                                    std::span<void *const> parameters) const {
  const auto memory = std::make_shared<Areas>();
  KILN_TRY(memory->resize(sizes.bytes(executable.sizes().prepared), "prepared parameters"));
  const Prepared prepared{.parameters = {parameters.begin(), parameters.end()},
                          .storages = memory->addresses(),
                          .size_bytes = memory->size_bytes(),
                          .memory = memory};

  HostSteps steps(executable, kernels_, executable.plan().prepare, executable.sizes().prepare);
  KILN_TRY(steps.resolve(sizes));
  steps.ready().set(prepared);
  KILN_TRY(steps.run([] { return error(Code::internal, "the reference has nothing to prepare"); }));
  return prepared;
}

}  // namespace kiln
