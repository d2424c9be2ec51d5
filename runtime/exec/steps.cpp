#include "runtime/exec/steps.h"

#include <algorithm>

#include "jit/base/kernel_args.h"

namespace kiln {
namespace {

using Risks = std::vector<const Plan::Risk *>;

// Each once: a decomposition's nodes have one name.
void add_risk(const Plan::Risk &risk, uint32_t bit, Risks &risks) {
  const auto is_same = [&](const Plan::Risk *other) { return other->text() == risk.text(); };
  if (risk.bits & bit && std::ranges::none_of(risks, is_same)) risks.push_back(&risk);
}

// Of the plan and of those nested in it.
void find_risks(const Plan &plan, uint32_t bit, Risks &risks) {
  for (const Plan::Risk &risk : plan.risks) add_risk(risk, bit, risks);
  for (const Plan &nested : plan.nested) find_risks(nested, bit, risks);
}

}  // namespace

ReadySteps::ReadySteps(const Plan &plan, const PlanSizes &sizes, std::span<const Plan::Step> steps,
                       std::span<const PlanSizes::Step> numbers)
    : plan_(plan), sizes_(sizes), plan_steps_(steps), numbers_(numbers), uses_(plan.slots.size()) {
  for (const Plan::Step &s : steps) {
    steps_.push_back({.kind = s.kind,
                      .first_operand = static_cast<uint32_t>(operands_.size()),
                      .first_size = static_cast<uint32_t>(kernel_sizes_.size())});
    for (uint32_t slot : s.slots) {
      uses_[slot].push_back(static_cast<uint32_t>(operands_.size()));
      operands_.push_back(nullptr);
    }
    kernel_sizes_.resize(kernel_sizes_.size() + s.symbols.size());
  }
}

Status ReadySteps::resolve(const ResolvedSizes &sizes) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Plan::Step &s = plan_steps_[i];
    Step &ready = steps_[i];
    ready.tasks = sizes[numbers_[i].tasks];
    ready.scratch_bytes = static_cast<uint64_t>(std::max<int64_t>(sizes.most(numbers_[i].scratch_bytes), 0));
    for (size_t k = 0; k < s.symbols.size(); ++k) kernel_sizes_[ready.first_size + k] = sizes.symbols()[s.symbols[k]];
    if (s.kind != Plan::Step::Kind::copy) continue;
    const int64_t from = sizes[sizes_.slots[s.slots[0]]], to = sizes[sizes_.slots[s.slots[1]]];
    if ((from < 0 || from != to) && sizes.is_complete())
      return error(Code::internal, "step ", i, " copies ", from, " bytes to a slot of ", to, " bytes");
    ready.bytes = static_cast<uint64_t>(std::max<int64_t>(std::min(from, to), 0));
  }
  return {};
}

void ReadySteps::set(Plan::Slot::Kind kind, std::span<void *const> data) {
  const std::vector<Plan::Slot> &slots = plan_.slots;
  for (uint32_t slot = 0; slot < slots.size(); ++slot)
    if (slots[slot].kind == kind) set(slot, data[slots[slot].index]);
}

void ReadySteps::set(const Prepared &prepared) {
  set(Plan::Slot::Kind::parameter, prepared.parameters);
  set(Plan::Slot::Kind::prepared, prepared.storages);
}

Status ReadySteps::error_of(uint32_t bits, const Plan::Step *step, std::string_view where) const {
  // A kernel does not say which of its nodes it was: all that there may be are named.
  Risks all;
  const auto explain = [&](uint32_t bit, std::string_view what) -> std::string {
    if (!(bits & bit)) return "";
    Risks risks;
    for (const uint32_t risk : step ? std::span(step->risks) : std::span<const uint32_t>())
      add_risk(plan_.risks[risk], bit, risks);
    if (risks.empty()) find_risks(plan_, bit, risks);
    all.insert(all.end(), risks.begin(), risks.end());
    const std::string_view in = risks.empty() ? "" : risks.size() == 1 ? " in " : " in one of ";
    return str_cat(what, in, join(risks, ", ", [](const Plan::Risk *risk) { return risk->text(); }));
  };
  const std::string index = explain(KILN_ERROR_INDEX_OUT_OF_RANGE, "an index is out of range");
  const std::string division = explain(KILN_ERROR_DIVISION_BY_ZERO, "an integer is divided by zero");
  Status status = error(Code::out_of_range, index, index.empty() || division.empty() ? "" : "; ", division, where);
  const bool is_known = all.size() == 1 && !all[0]->node.path.empty();
  return is_known ? std::move(status).with_node(all[0]->node.name) : status;
}

}  // namespace kiln
