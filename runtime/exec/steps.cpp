#include "runtime/exec/steps.h"

#include <algorithm>

namespace kiln {
namespace {

// What the pool's threads share while they run one kernel.
struct Launch {
  kiln_kernel_fn entry;
  kiln_kernel_args args;
  const Areas &scratch;
};

void run_range(void *user, uint32_t worker, int64_t begin, int64_t end) {
  const Launch &launch = *static_cast<const Launch *>(user);
  kiln_kernel_args args = launch.args;
  args.begin = begin;
  args.end = end;
  args.scratch = launch.scratch.count() > 0 ? launch.scratch[worker] : nullptr;
  launch.entry(&args);
}

}  // namespace

ReadySteps::ReadySteps(const Executable &executable, std::span<const Plan::Step> steps,
                       std::span<const PlanSizes::Step> numbers)
    : executable_(executable), plan_steps_(steps), numbers_(numbers), uses_(executable.plan().slots.size()) {
  for (const Plan::Step &s : steps) {
    Ready ready{.kind = s.kind,
                .first_pointer = static_cast<uint32_t>(pointers_.size()),
                .first_size = static_cast<uint32_t>(kernel_sizes_.size())};
    if (s.kind == Plan::Step::Kind::launch && !executable.on_device()) ready.entry = executable.kernel(s.kernel);
    for (uint32_t slot : s.slots) {
      uses_[slot].push_back(static_cast<uint32_t>(pointers_.size()));
      pointers_.push_back(nullptr);
    }
    kernel_sizes_.resize(kernel_sizes_.size() + s.symbols.size());
    steps_.push_back(ready);
  }
  if (executable.on_device()) return;
  const Plan &plan = executable.plan();
  for (uint32_t slot = 0; slot < plan.slots.size(); ++slot) {
    // Kernels only read constants; their argument type has no const.
    if (plan.slots[slot].kind == Plan::Slot::Kind::constant)
      set(slot, const_cast<uint8_t *>(executable.artifact().constants[plan.slots[slot].index].bytes.data()));
  }
}

Status ReadySteps::resolve(const ResolvedSizes &sizes) {
  uint64_t scratch = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Plan::Step &s = plan_steps_[i];
    Ready &ready = steps_[i];
    ready.tasks = sizes[numbers_[i].tasks];
    ready.scratch_bytes = static_cast<uint64_t>(std::max<int64_t>(sizes[numbers_[i].scratch_bytes], 0));
    scratch = std::max(scratch, ready.scratch_bytes);
    for (size_t k = 0; k < s.symbols.size(); ++k) kernel_sizes_[ready.first_size + k] = sizes.symbols()[s.symbols[k]];
    if (s.kind != Plan::Step::Kind::copy) continue;
    const PlanSizes &plan_sizes = executable_.sizes();
    const int64_t from = sizes[plan_sizes.slots[s.slots[0]]], to = sizes[plan_sizes.slots[s.slots[1]]];
    if (from < 0 || from != to)
      return error(Code::internal, "step ", i, " copies ", from, " bytes to a slot of ", to, " bytes");
    ready.bytes = static_cast<uint64_t>(from);
  }
  if (executable_.on_device()) return {};  // which has scratch of its own
  if (scratch == 0) return {};
  return scratch_.resize(std::vector(executable_.pool().threads(), scratch), "scratch of kernels");
}

void ReadySteps::launch(const Ready &step) {
  if (step.tasks <= 0) return;
  Launch launch{step.entry, {}, scratch_};
  launch.args.buffers = pointers_.data() + step.first_pointer;
  launch.args.sizes = kernel_sizes_.data() + step.first_size;
  launch.args.error_word = &error_word_;
  if (step.tasks == 1) {
    run_range(&launch, 0, 0, 1);
  } else {
    executable_.pool().run(step.tasks, run_range, &launch);
  }
}

std::string ReadySteps::error_text() const {
  // A kernel does not say which of its nodes it was: all that there may be are named.
  const auto explain = [this](uint32_t bit, std::string_view what) -> std::string {
    if (!(error_word_ & bit)) return "";
    std::vector<std::string> nodes;
    for (const Plan::Risk &risk : executable_.plan().risks)
      if (risk.bits & bit) nodes.push_back(risk.text());
    const std::string_view where = nodes.empty() ? "" : nodes.size() == 1 ? " in " : " in one of ";
    return str_cat(what, where, join(nodes, ", ", [](const std::string &node) { return node; }));
  };
  const std::string index = explain(KILN_ERROR_INDEX_OUT_OF_RANGE, "an index is out of range");
  const std::string division = explain(KILN_ERROR_DIVISION_BY_ZERO, "an integer is divided by zero");
  return str_cat(index, index.empty() || division.empty() ? "" : "; ", division);
}

Status ReadySteps::error_of(size_t step) const {
  return error(Code::out_of_range, error_text(), " (first in step ", step, ", kernel ", plan_steps_[step].kernel, ")");
}

}  // namespace kiln
