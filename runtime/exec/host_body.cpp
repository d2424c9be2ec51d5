#include "runtime/exec/host_body.h"

#include "runtime/exec/backend_step.h"
#include "runtime/exec/function_step.h"
#include "runtime/exec/op_step.h"
#include "runtime/exec/reference_step.h"

namespace kiln {

HostBody::HostBody(const Executable &executable, std::span<const kiln_kernel_fn> kernels, PlanPart part,
                   const Signature &signature, ResolvedSizes &sizes, LoopWatch &watch)
    : Body(part, signature, sizes, watch),
      executable_(executable),
      kernels_(kernels),
      steps_(executable, kernels, part.plan, part.numbers, part.plan.steps, part.numbers.steps) {
  for (const Plan::Step &step : part.plan.steps)
    node_steps_.push_back(step.kind == Plan::Step::Kind::reference ? node_step_of(step.graph) : nullptr);
  make_all_nested();
}

void HostBody::set_prepared(const Prepared &prepared) {
  steps_.ready().set(prepared);
  for (const auto &[step, made] : prepared.programs)
    static_cast<HostBody &>(nested_body(step)).node_steps_[0]->set_prepared(made);
}

std::unique_ptr<NodeStep> HostBody::node_step_of(uint32_t graph) const {
  if (const LoadedProgram *program = executable_.program_of(graph)) return std::make_unique<BackendStep>(*program);
  const BoundFunction &function = executable_.function_of(graph);
  const Graph &whole = executable_.reference_graph(graph);
  if (function.function) return std::make_unique<FunctionStep>(*function.function, function.binding, *node_of(whole));
  if (const Node *node = node_of(whole); node && node->op->name == "token") return std::make_unique<TokenStep>();
  return OpStep::of(whole);
}

std::unique_ptr<Body> HostBody::make_nested(PlanPart part, const Signature &signature, ResolvedSizes &sizes) {
  return std::make_unique<HostBody>(executable_, kernels_, part, signature, sizes, watch_);
}

Status HostBody::place_memory() {
  KILN_TRY(steps_.place_scratch());
  KILN_TRY(arena_.resize(sizes_.bytes(part_.numbers.arena), "arena"));
  steps_.ready().set(Plan::Slot::Kind::arena, arena_.addresses());
  for (const std::unique_ptr<NodeStep> &step : node_steps_)
    if (step) KILN_TRY(step->resize(signature_, sizes_));
  return {};
}

Status HostBody::run() {
  sizes_.begin_run();
  const auto run_other = [this](size_t step, Status &found) {
    const bool is_graph = part_.plan.steps[step].kind == Plan::Step::Kind::reference;
    return first_of(found, is_graph ? run_graph(step) : run_control(step), watch_);
  };
  if (!watch_.times_steps()) return steps_.run(run_other, [&](size_t step) { return watch_.after(step); }, {&watch_});
  StepClock clock(watch_, part_.plan, sizes_.symbols());
  return steps_.run(run_other, [&](size_t step) { return clock.ended(step); }, {&watch_, true});
}

Status HostBody::run_on(std::span<void *const> operands) {
  if (node_steps_.size() != 1 || !node_steps_[0]) return Body::run_on(operands);
  // One node, which other code runs: its step's slots are those of the signature.
  Status status = node_steps_[0]->run(operands);
  return status.ok() ? Status() : watch_.stop(std::move(status));
}

Status HostBody::run_graph(size_t step) {
  const std::span<void *const> data = steps_.ready().operands_of(step);
  Status status = node_steps_[step]
                      ? node_steps_[step]->run(data)
                      : run_reference_step(executable_.reference_graph(part_.plan.steps[step].graph), part_.plan,
                                           signature_, sizes_, data, watch_, executable_.pool(), is_named());
  return status.ok() ? Status() : watch_.stop(std::move(status));
}

Status HostBody::copy(void *to, const void *from, uint64_t bytes) {
  steps_.copy(to, from, bytes);
  return {};
}

}  // namespace kiln
