#include "runtime/exec/host_place.h"

#include <exception>
#include <utility>

#include "jit/base/target.h"
#include "runtime/exec/host_body.h"
#include "runtime/exec/host_steps.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/perf_map.h"

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

Result<Prepared> HostPlace::prepare(const Executable &executable, const Signature &, const ResolvedSizes &sizes,
                                    std::span<const ParameterArray> parameters, uint32_t) const {
  const auto memory = std::make_shared<Areas>();
  KILN_TRY(memory->resize(sizes.bytes(executable.sizes().prepared), "prepared parameters"));
  Prepared prepared{
      .parameters = {}, .storages = memory->addresses(), .size_bytes = memory->size_bytes(), .memory = memory};
  for (const ParameterArray &parameter : parameters) prepared.parameters.push_back(parameter.data);

  const Plan &plan = executable.plan();
  HostSteps steps(executable, kernels_, plan, executable.sizes(), plan.prepare, executable.sizes().prepare);
  KILN_TRY(steps.ready().resolve(sizes));
  KILN_TRY(steps.place_scratch());
  steps.ready().set(prepared);
  KILN_TRY(steps.run([](size_t, Status &) { return error(Code::internal, "prepare runs kernels alone"); }));
  for (uint32_t step = 0; step < plan.steps.size(); ++step) KILN_TRY(prepare_program(executable, step, prepared));
  return prepared;
}

}  // namespace kiln
