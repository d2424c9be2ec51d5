#include "runtime/plan/planner.h"

#include <algorithm>
#include <map>

#include "runtime/plan/node_names.h"
#include "runtime/plan/signature_plan.h"
#include "runtime/plan/storage.h"

namespace kiln {
namespace {

using kernel::Launch;
using SlotKind = Plan::Slot::Kind;
constexpr uint32_t none = UINT32_MAX;

void sort_unique(std::vector<uint32_t> &numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
}

class Planner {
 public:
  Planner(Plan plan, const Lowered &lowered, const kernel::Fused &fused, std::span<const uint32_t> images)
      : lowered_(lowered), fused_(fused), images_(images) {
    out_.plan = std::move(plan);
    slot_of_.assign(fused.tensors.size(), none);
    last_use_.assign(fused.tensors.size(), 0);
    for (uint32_t i = 0; i < out_.plan.symbols.size(); ++i) symbol_number_[out_.plan.symbols[i].name] = i;
  }

  Result<Planned> run() {
    find_lifetimes();
    place_signature();
    place_constants();
    place_outputs();
    for (uint32_t i = 0; i < fused_.launches.size(); ++i) KILN_TRY(add_launch(i));
    add_final_copies();
    plan().arena = std::move(pool_).finish();
    return std::move(out_);
  }

 private:
  Plan &plan() { return out_.plan; }

  static bool writes(const Launch &launch, size_t buffer) {
    return launch.kernel->buffers[buffer].space == kernel::Buffer::Space::out;
  }

  // The number of the last launch that touches each tensor; none for those that final copies read.
  void find_lifetimes() {
    made_by_.assign(fused_.tensors.size(), none);
    for (uint32_t i = 0; i < fused_.launches.size(); ++i) {
      const Launch &launch = fused_.launches[i];
      for (size_t b = 0; b < launch.buffers.size(); ++b) {
        last_use_[launch.buffers[b]] = i;
        if (writes(launch, b)) made_by_[launch.buffers[b]] = i;
      }
    }
    for (uint32_t tensor : lowered_.outputs) last_use_[tensor] = none;
    for (const Lowered::WriteBack &w : lowered_.write_backs) last_use_[w.source] = none;
  }

  // plan_of_signature() made these slots: inputs, then parameters, then outputs.
  void place_signature() {
    uint32_t slot = 0;
    for (uint32_t tensor : lowered_.inputs) slot_of_[tensor] = slot++;
    for (uint32_t tensor : lowered_.parameters) slot_of_[tensor] = slot++;
    first_output_slot_ = slot;
  }

  void place_constants() {
    std::vector<bool> read(fused_.tensors.size());
    for (const Launch &launch : fused_.launches) {
      for (uint32_t tensor : launch.buffers) read[tensor] = true;
    }
    for (uint32_t tensor : lowered_.outputs) read[tensor] = true;
    for (const Lowered::Constant &constant : lowered_.constants) {
      if (!read[constant.tensor]) continue;
      slot_of_[constant.tensor] =
          add_slot(SlotKind::constant, static_cast<uint32_t>(out_.constants.size()), constant.tensor);
      out_.constants.push_back(constant.data);
    }
  }

  // A launch writes straight into an output; whatever else an output is, a copy brings there at the end.
  void place_outputs() {
    for (uint32_t i = 0; i < lowered_.outputs.size(); ++i) {
      const uint32_t tensor = lowered_.outputs[i];
      const bool made_at_each_call = made_by_[tensor] != none && !fused_.launches[made_by_[tensor]].prepared;
      if (made_at_each_call && slot_of_[tensor] == none) slot_of_[tensor] = first_output_slot_ + i;
    }
  }

  uint32_t add_slot(SlotKind kind, uint32_t index, uint32_t tensor) {
    const kernel::Tensor &t = fused_.tensors[tensor];
    plan().slots.push_back({kind, index, span_bytes(t.dtype, t.dims, t.strides)});
    return static_cast<uint32_t>(plan().slots.size() - 1);
  }

  Status add_launch(uint32_t number) {
    const Launch &launch = fused_.launches[number];
    for (size_t b = 0; b < launch.buffers.size(); ++b) {
      if (writes(launch, b) && slot_of_[launch.buffers[b]] == none) place_result(launch.buffers[b], launch.prepared);
    }
    KILN_ASSIGN(Plan::Step step, step_of(launch, images_[number]));
    (launch.prepared ? plan().prepare : plan().steps).push_back(std::move(step));
    // Only now: what a launch reads must not be where it writes.
    for (uint32_t tensor : launch.buffers) {
      if (last_use_[tensor] == number) free_result(tensor);
    }
    return {};
  }

  // What is prepared lives as long as its binding; what a call makes, from its launch to its last reader.
  void place_result(uint32_t tensor, bool prepared) {
    const kernel::Tensor &t = fused_.tensors[tensor];
    const Expr bytes = span_bytes(t.dtype, t.dims, t.strides);
    if (prepared) {
      plan().prepared.push_back({bytes});
      slot_of_[tensor] = add_slot(SlotKind::prepared, static_cast<uint32_t>(plan().prepared.size() - 1), tensor);
    } else {
      slot_of_[tensor] = add_slot(SlotKind::arena, pool_.take(bytes), tensor);
    }
  }

  void free_result(uint32_t tensor) {
    const Plan::Slot &slot = plan().slots[slot_of_[tensor]];
    if (slot.kind != SlotKind::arena) return;
    pool_.give_back(slot.index);
    last_use_[tensor] = none;  // a launch may name a tensor twice
  }

  Result<Plan::Step> step_of(const Launch &launch, uint32_t image) {
    Plan::Step step{.kind = Plan::Step::Kind::launch, .kernel = image};
    for (uint32_t tensor : launch.buffers) {
      if (slot_of_[tensor] == none)
        return error(Code::internal, "a kernel reads tensor ", tensor, ", which no kernel makes");
      step.slots.push_back(slot_of_[tensor]);
    }
    for (const std::string &name : launch.symbols) step.symbols.push_back(symbol_number_.at(name));
    return step;
  }

  // Outputs first: one of them may be an input that is about to be written.
  void add_final_copies() {
    for (uint32_t i = 0; i < lowered_.outputs.size(); ++i) {
      const uint32_t from = slot_of_[lowered_.outputs[i]];
      if (from != first_output_slot_ + i) add_copy(from, first_output_slot_ + i);
    }
    for (const Lowered::WriteBack &w : lowered_.write_backs) {
      add_copy(slot_of_[w.source], slot_of_[lowered_.inputs[w.input]]);
      plan().written_inputs.push_back(w.input);
    }
    sort_unique(plan().written_inputs);
  }

  void add_copy(uint32_t from, uint32_t to) {
    plan().steps.push_back({.kind = Plan::Step::Kind::copy, .slots = {from, to}});
  }

  const Lowered &lowered_;
  const kernel::Fused &fused_;
  std::span<const uint32_t> images_;
  Planned out_;
  StoragePool pool_;
  std::vector<uint32_t> slot_of_, last_use_, made_by_;  // by tensor; slots, launches
  std::map<std::string, uint32_t> symbol_number_;
  uint32_t first_output_slot_ = 0;
};

}  // namespace

Result<Planned> plan(const Graph &given, const Graph &compiled, const Lowered &lowered, const kernel::Fused &fused,
                     std::span<const uint32_t> images) {
  KILN_ASSIGN(Plan signature, plan_of_signature(given));
  add_checks(compiled, given, signature);
  for (const Lowered::Risk &risk : lowered.risks)
    signature.risks.push_back({find_node(given, risk.node), risk.op, risk.bits});
  KILN_ASSIGN(std::vector<Contract> contracts, contracts_of(fused, images, signature));
  KILN_ASSIGN(Planned planned, Planner(std::move(signature), lowered, fused, images).run());
  planned.contracts = std::move(contracts);
  return planned;
}

Result<Plan> plan_reference(const Graph &graph) {
  KILN_ASSIGN(Plan plan, plan_of_signature(graph));
  Plan::Step step{.kind = Plan::Step::Kind::reference};
  for (uint32_t slot = 0; slot < plan.slots.size(); ++slot) step.slots.push_back(slot);
  plan.steps.push_back(std::move(step));
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op || !(node.op->flags & op_flags::mutates)) continue;
    const auto input = std::ranges::find(graph.inputs(), node.inputs[0].node);
    plan.written_inputs.push_back(static_cast<uint32_t>(input - graph.inputs().begin()));
  }
  sort_unique(plan.written_inputs);
  return plan;
}

}  // namespace kiln
