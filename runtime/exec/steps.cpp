#include "runtime/exec/steps.h"

#include <algorithm>

#include "jit/base/kernel_args.h"

namespace kiln {
namespace {

// Of the plan and of those nested in it, each once: a decomposition's nodes have one name.
void name_risks(const Plan &plan, uint32_t bit, std::vector<std::string> &nodes) {
  for (const Plan::Risk &risk : plan.risks)
    if (std::string node = risk.text(); risk.bits & bit && std::ranges::find(nodes, node) == nodes.end())
      nodes.push_back(std::move(node));
  for (const Plan &nested : plan.nested) name_risks(nested, bit, nodes);
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

std::string ReadySteps::error_text(uint32_t bits) const {
  // A kernel does not say which of its nodes it was: all that there may be are named.
  const auto explain = [&](uint32_t bit, std::string_view what) -> std::string {
    if (!(bits & bit)) return "";
    std::vector<std::string> nodes;
    name_risks(plan_, bit, nodes);
    const std::string_view where = nodes.empty() ? "" : nodes.size() == 1 ? " in " : " in one of ";
    return str_cat(what, where, join(nodes, ", ", [](const std::string &node) { return node; }));
  };
  const std::string index = explain(KILN_ERROR_INDEX_OUT_OF_RANGE, "an index is out of range");
  const std::string division = explain(KILN_ERROR_DIVISION_BY_ZERO, "an integer is divided by zero");
  return str_cat(index, index.empty() || division.empty() ? "" : "; ", division);
}

}  // namespace kiln
