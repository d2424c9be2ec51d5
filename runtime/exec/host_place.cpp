#include "runtime/exec/host_place.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "jit/base/target.h"
#include "runtime/exec/host_body.h"
#include "runtime/exec/host_steps.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/perf_map.h"
#include "runtime/exec/prepare_parts.h"

namespace kiln {
namespace {

// The kernels work on the host's arrays where they are. A run in flight is a job of the pool's thread for such.
class HostRunner final : public Runner, private RunThread::Job {
 public:
  HostRunner(const Executable &executable, std::span<const kiln_kernel_fn> kernels, const Signature &signature,
             ResolvedSizes &sizes, LoopWatch &watch)
      : executable_(executable),
        watch_(watch),
        body_(executable, kernels, {executable.plan(), executable.sizes()}, signature, sizes, watch) {}

  Status place() override { return body_.place(); }
  ArrayPlace own_place() const override { return {}; }
  void set_array(uint32_t slot, void *data, bool) override { body_.set_array(slot, data); }
  void set_prepared(const Prepared &prepared) override { body_.set_prepared(prepared); }
  Status run(std::span<void *const>) override {
    watch_.begin_run();
    return body_.run();
  }
  Status start(std::span<void *const>, uint64_t stream) override {
    if (stream != 0)
      return invalid("run: stream is ", stream, ", and backend ", executable_.artifact().backend,
                     " has no streams; KILN_RUN_ASYNC has a run return early");
    KILN_TRY(executable_.check_any_thread());
    thread().give(*this);
    return {};
  }
  bool queues() const override { return false; }
  Result<bool> is_over() override { return Job::is_over(); }
  Status finish() override {
    thread().finish(*this);
    if (const std::exception_ptr thrown = std::exchange(thrown_, nullptr)) std::rethrow_exception(thrown);
    return std::exchange(came_to_, Status());
  }
  uint64_t size_bytes() const override { return body_.size_bytes(); }

 private:
  RunThread &thread() const { return executable_.pool().run_thread(); }
  void run(bool on_callers_thread) noexcept override {
    try {
      watch_.begin_run(on_callers_thread);
      came_to_ = body_.run();
    } catch (...) {  // no memory: nothing may leave a thread
      thrown_ = std::current_exception();
    }
  }
  void while_waiting() noexcept override { watch_.pass_on(); }

  const Executable &executable_;
  LoopWatch &watch_;
  HostBody body_;
  Status came_to_;
  std::exception_ptr thrown_;
};

// Has the backend of a step that runs a program of one make of its parameters what it wants.
Status prepare_program(const Executable &executable, uint32_t number, Prepared &prepared) {
  const Plan &plan = executable.plan();
  const Plan::Step &step = plan.steps[number];
  if (step.kind != Plan::Step::Kind::call) return {};
  const Plan &nested = plan.nested[step.nested[0].plan];
  const Plan::Step *const only = only_reference_step(nested);
  const LoadedProgram *const loaded = only ? executable.program_of(only->graph) : nullptr;
  if (!loaded || loaded->parameters == 0 || !loaded->program->prepares()) return {};
  std::vector<RunArray> arrays;
  std::vector<void *> data;
  for (size_t i = nested.inputs.size() - loaded->parameters; i < nested.inputs.size(); ++i) {
    const Plan::Slot &slot = plan.slots[step.slots[i]];
    if (slot.kind == Plan::Slot::Kind::parameter)
      data.push_back(prepared.parameters[slot.index]);
    else if (slot.kind == Plan::Slot::Kind::prepared)
      data.push_back(prepared.storages[slot.index]);
    else
      return {};  // made at each run
    std::vector<int64_t> &dims = arrays.emplace_back(RunArray{nested.inputs[i].dtype, {}}).dims;
    for (const Dim &dim : nested.inputs[i].dims) {
      if (!dim.is_integer()) return {};
      dims.push_back(dim.integer());
    }
  }
  KILN_ASSIGN(prepared.programs[number], loaded->program->prepare(arrays, data));
  return {};
}

}  // namespace

Result<std::unique_ptr<const Place>> HostPlace::load(const Artifact &artifact) {
  auto place = std::make_unique<HostPlace>();
  if (!artifact.images.empty()) KILN_TRY(place->map(artifact));
  return std::unique_ptr<const Place>(std::move(place));
}

Status HostPlace::map(const Artifact &artifact) {
  const Result<Target> target = Target::by_name(artifact.target);
  if (!target.ok()) return error(Code::incompatible, "the artifact's target: ", target.status().message());
  fits_ = target->check_host();
  if (!fits_.ok() || !has_code(artifact)) return {};
  const std::string name = str_cat("kiln-", artifact.graph_key.hex().substr(0, 16));
  KILN_ASSIGN(const bool for_perf, perf_map_wanted());
  KILN_ASSIGN(memory_, ImageMemory::load(artifact.images, name, for_perf));
  if (for_perf) write_perf_map(memory_, artifact.images, name);
  for (size_t i = 0; i < artifact.images.size(); ++i)
    kernels_.push_back(reinterpret_cast<kiln_kernel_fn>(reinterpret_cast<uintptr_t>(memory_.entry(i))));
  return {};
}

Result<std::unique_ptr<Runner>> HostPlace::make_runner(const Executable &executable, const Signature &signature,
                                                       ResolvedSizes &sizes, LoopWatch &watch, uint32_t device) const {
  if (device != 0) return invalid("device is ", device, ", and backend ", executable.artifact().backend, " has none");
  return std::unique_ptr<Runner>(std::make_unique<HostRunner>(executable, kernels_, signature, sizes, watch));
}

Result<Prepared> HostPlace::prepare(const Executable &executable, const Signature &signature,
                                    const ResolvedSizes &sizes, std::span<const ParameterArray> parameters, uint32_t,
                                    PreparedParts &parts, bool parts_alone) const {
  const Plan &plan = executable.plan();
  Prepared prepared{.parameters = {}, .storages = std::vector<void *>(plan.prepared.size())};
  for (const ParameterArray &parameter : parameters) prepared.parameters.push_back(parameter.data);

  struct Making {
    PreparePart part;
    PreparedParts::Search search;
    std::shared_ptr<Areas> memory;
    std::unique_ptr<Areas> passing;  // what only other steps of preparing read
  };
  std::vector<Making> all;
  std::vector<uint32_t> to_run;
  const std::vector<uint64_t> bytes = sizes.bytes(executable.sizes().prepared);
  for (PreparePart &part : prepare_parts(plan)) {
    PreparedParts::Search search = parts.find(part, executable, signature, sizes, parameters);
    if (search.part) {
      for (uint32_t i = 0; i < part.kept; ++i) prepared.storages[part.storages[i]] = search.part->storages[i];
      prepared.memory.push_back(search.part->memory);
      continue;
    }
    const auto lacks = std::ranges::find_if(part.parameters, [&](uint32_t p) { return !parameters[p].data; });
    if (lacks != part.parameters.end() && parts_alone) continue;
    if (lacks != part.parameters.end())
      return invalid("parameter '", plan.parameters[*lacks].name,
                     "' has to be bound, too: the artifact's file has only what was prepared of it");
    std::vector<uint64_t> sizes_bytes;
    for (const uint32_t storage : part.storages) sizes_bytes.push_back(bytes[storage]);
    auto memory = std::make_shared<Areas>();
    auto passing = std::make_unique<Areas>();
    const auto [kept, others] =
        std::pair(std::span(sizes_bytes).first(part.kept), std::span(sizes_bytes).subspan(part.kept));
    KILN_TRY(memory->resize(kept, "prepared parameters"));
    KILN_TRY(passing->resize(others, "parameters while they are prepared"));
    for (size_t i = 0; i < others.size(); ++i) prepared.storages[part.storages[part.kept + i]] = (*passing)[i];
    for (size_t i = 0; i < part.kept; ++i) {
      prepared.storages[part.storages[i]] = (*memory)[i];
      // What lies between two areas gets into a record, too.
      uint8_t *const end = (*memory)[i] + sizes_bytes[i];
      if (i + 1 < part.kept && end < (*memory)[i + 1] && (*memory)[i + 1] - end < 64)
        std::memset(end, 0, static_cast<size_t>((*memory)[i + 1] - end));
    }
    to_run.insert(to_run.end(), part.steps.begin(), part.steps.end());
    all.push_back({std::move(part), std::move(search), std::move(memory), std::move(passing)});
  }
  KILN_TRY(run_prepare(executable, sizes, std::move(to_run), prepared));
  for (Making &made : all) {
    PreparedPart part;
    part.parameters = made.part.parameters;
    part.memory = made.memory;
    part.private_bytes = made.memory->size_bytes();
    part.steps = static_cast<uint32_t>(made.part.steps.size());
    uint64_t kept_bytes = 0;
    for (uint32_t i = 0; i < made.part.kept; ++i) {
      uint8_t *const at = (*made.memory)[i];
      part.storages.push_back(at);
      kept_bytes = static_cast<uint64_t>(at - (*made.memory)[0]) + bytes[made.part.storages[i]];
    }
    for (size_t i = made.part.kept; i < made.part.storages.size(); ++i)
      prepared.storages[made.part.storages[i]] = nullptr;
    prepared.memory.push_back(made.memory);
    parts.made(made.search, std::move(part), kept_bytes, parameters);
  }
  for (uint32_t step = 0; step < plan.steps.size() && !parts_alone; ++step)
    KILN_TRY(prepare_program(executable, step, prepared));
  return prepared;
}

// Some of the plan's prepare steps.
Status HostPlace::run_prepare(const Executable &executable, const ResolvedSizes &sizes, std::vector<uint32_t> numbers,
                              const Prepared &prepared) const {
  if (numbers.empty()) return {};
  std::ranges::sort(numbers);
  std::vector<Plan::Step> planned;
  std::vector<PlanSizes::Step> planned_sizes;
  for (const uint32_t number : numbers) {
    planned.push_back(executable.plan().prepare[number]);
    planned_sizes.push_back(executable.sizes().prepare[number]);
  }
  HostSteps steps(executable, kernels_, executable.plan(), executable.sizes(), planned, planned_sizes);
  KILN_TRY(steps.ready().resolve(sizes));
  KILN_TRY(steps.place_scratch());
  steps.ready().set(prepared);
  return steps.run([](size_t, Status &) { return error(Code::internal, "prepare runs kernels alone"); });
}

}  // namespace kiln
