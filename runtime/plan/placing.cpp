#include "runtime/plan/placing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/plan/order.h"
#include "runtime/plan/storage.h"

namespace kiln {
namespace {

using SlotKind = Plan::Slot::Kind;
using StepKind = Plan::Step::Kind;
using Why = Plan::Step::Why;
constexpr uint32_t none = StepsToPlace::none;

class Placing {
 public:
  using Tensor = StepsToPlace::Tensor;
  using Item = StepsToPlace::Item;
  using WriteBack = StepsToPlace::WriteBack;

  Placing(StepsToPlace given, const ContractOf &contract_of, const NumberOfConstant &constant, Plan &plan)
      : contract_of_(contract_of),
        constant_(constant),
        plan_(plan),
        tensors_(std::move(given.tensors)),
        items_(std::move(given.items)),
        write_backs_(std::move(given.write_backs)) {
    for (StepsToPlace::Output &output : given.outputs) {
      outputs_.push_back(output.tensor);
      output_origins_.push_back({std::move(output.origin)});
    }
    const auto first = static_cast<uint32_t>(plan.inputs.size() + plan.parameters.size());
    for (uint32_t i = 0; i < plan.outputs.size(); ++i)
      if (plan.makes(i)) output_slots_.push_back(first + i);
  }

  Status run() {
    save_written_sources();
    put_off_writes();
    find_lifetimes();
    find_donated();
    place_written_inputs();
    place_outputs();
    for (uint32_t i = 0; i < items_.size(); ++i) KILN_TRY(add_step(i));
    KILN_TRY(add_final_copies());
    plan_.arena = std::move(pool_).finish();
    return {};
  }

 private:
  // What an input is to be may be another input, which is written, too: as that is before.
  void save_written_sources() {
    for (WriteBack &w : write_backs_) {
      const bool is_written = std::ranges::any_of(
          write_backs_, [&](const WriteBack &other) { return other.input == w.source && other.input != w.input; });
      if (!is_written) continue;
      tensors_.push_back({.size_bytes = tensors_[w.source].size_bytes, .dtype = tensors_[w.source].dtype});
      const auto saved = static_cast<uint32_t>(tensors_.size() - 1);
      items_.push_back(Item{.step = {.kind = StepKind::copy, .why = Why::written, .origins = w.origins},
                            .tensors = {std::exchange(w.source, saved), saved},
                            .written = {false, true}});
    }
  }

  // Steps that change what others read come after those, where they can: then they may do so in place. Those of a piece
  // that share memory with others of it, at other times, stay where they are.
  void put_off_writes() {
    std::vector<StepUse> uses(items_.size());
    std::vector<Overwrite> overwrites;
    std::vector<uint32_t> made_by(tensors_.size(), none);
    for (uint32_t i = 0; i < items_.size(); ++i) {
      for (size_t k = 0; k < items_[i].tensors.size(); ++k) {
        const uint32_t tensor = items_[i].tensors[k];
        (items_[i].written[k] ? uses[i].writes : uses[i].reads).push_back(tensor);
        if (items_[i].written[k]) made_by[tensor] = i;
      }
      for (const auto &[k, base] : items_[i].bases) {
        uses[i].reads.push_back(base);
        overwrites.push_back({i, base});
      }
      sort_unique(uses[i].reads);
    }
    for (const WriteBack &w : write_backs_) {
      uint32_t first = w.source;  // which is made of others that are changed
      while (first != none && made_by[first] != none && base_of(made_by[first], first) != none)
        first = base_of(made_by[first], first);
      if (first != w.input && made_by[first] != none) overwrites.push_back({made_by[first], w.input});
    }
    std::erase_if(overwrites, [&](const Overwrite &overwrite) {
      return std::ranges::any_of(items_[overwrite.step].tensors,
                                 [&](uint32_t tensor) { return tensors_[tensor].lies_in != none; });
    });
    if (overwrites.empty()) return;
    const std::vector<uint32_t> order = put_off(uses, overwrites);
    if (!keeps_writes_in_place(uses, order)) return;
    std::vector<Item> items;
    for (const uint32_t i : order) items.push_back(std::move(items_[i]));
    items_ = std::move(items);
  }

  // Steps of a piece write inputs and what others of it have written, which an order of tensors that are made once does
  // not know of: whether in `order`, too, each of these writes comes behind what came before it, and before the rest.
  static bool keeps_writes_in_place(std::span<const StepUse> uses, std::span<const uint32_t> order) {
    struct Accesses {
      uint32_t last_write = none, last = 0;  // by their places in `order`
    };
    std::vector<uint32_t> place(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::map<uint32_t, Accesses> tensors;
    for (uint32_t i = 0; i < uses.size(); ++i) {
      for (const uint32_t tensor : uses[i].reads) {
        Accesses &a = tensors.try_emplace(tensor).first->second;
        if (a.last_write != none && place[i] < a.last_write) return false;
        a.last = std::max(a.last, place[i]);
      }
      for (const uint32_t tensor : uses[i].writes) {
        const auto [known, is_first] = tensors.try_emplace(tensor);
        Accesses &a = known->second;
        if (!is_first && place[i] < a.last) return false;
        a.last_write = a.last = place[i];
      }
    }
    return true;
  }

  // The tensor that `tensor` is but for what item `made_by` writes, or none.
  uint32_t base_of(uint32_t made_by, uint32_t tensor) const {
    for (const auto &[k, base] : items_[made_by].bases)
      if (items_[made_by].tensors[k] == tensor) return base;
    return none;
  }

  void find_lifetimes() {
    writers_.resize(tensors_.size());
    for (uint32_t i = 0; i < items_.size(); ++i) {
      for (size_t k = 0; k < items_[i].tensors.size(); ++k) {
        Tensor &tensor = tensors_[items_[i].tensors[k]];
        tensor.last_use = i;
        if (items_[i].written[k]) {
          tensor.made_by = i;
          writers_[items_[i].tensors[k]].push_back(i);
        }
        if (tensor.lies_in != none) tensors_[tensor.lies_in].last_use = i;
      }
      for (const auto &[k, base] : items_[i].bases) tensors_[base].last_use = i;
    }
    for (const uint32_t output : outputs_) tensors_[output].last_use = none;
    for (const WriteBack &w : write_backs_) tensors_[w.source].last_use = none;
  }

  // What a call may use as its own: what no copy_ writes. Those that nothing reads are free from the first.
  void find_donated() {
    for (const uint32_t input : plan_.donated_inputs) {
      const bool is_written =
          std::ranges::any_of(write_backs_, [&](const WriteBack &w) { return tensors_[w.input].slot == input; });
      if (!is_written) donated_.insert(input);
    }
    std::vector<bool> read(tensors_.size());
    for (const Item &item : items_) {
      for (const uint32_t tensor : item.tensors) read[tensor] = true;
      for (const auto &[k, base] : item.bases) read[base] = true;
    }
    for (const uint32_t output : outputs_) read[output] = true;
    for (const WriteBack &w : write_backs_) read[w.source] = true;
    for (uint32_t t = 0; t < tensors_.size(); ++t) {
      if (!is_donated(tensors_[t])) continue;
      if (!read[t]) free_donated_.push_back(tensors_[t].slot);
    }
  }

  // Of an input, whose slot has its number, or of what lies there since.
  bool is_donated(const Tensor &t) const {
    return t.slot != none && plan_.slots[t.slot].kind == SlotKind::input &&
           donated_.contains(plan_.slots[t.slot].index);
  }

  // The smallest free one that holds `t`, which is of its type: its alignment is that of its elements. Or none.
  uint32_t take_donated(const Tensor &t) {
    const auto size = [&](uint32_t input) -> const Expr & { return plan_.slots[input].size_bytes; };
    auto best = free_donated_.end();
    for (auto at = free_donated_.begin(); at != free_donated_.end(); ++at) {
      if (t.dtype == DType::none || plan_.inputs[*at].dtype != t.dtype || !never_above(t.size_bytes, size(*at)))
        continue;
      if (best == free_donated_.end() || never_above(size(*at), size(*best))) best = at;
    }
    if (best == free_donated_.end()) return none;
    const uint32_t input = *best;
    free_donated_.erase(best);
    return input;
  }

  // An input's new value is made where the input lies, if nothing reads the old one later.
  void place_written_inputs() {
    for (const WriteBack &w : write_backs_) place_at(tensors_[w.input].slot, w.source, w.input);
  }

  // A step writes straight into an output; whatever else an output is, a copy brings there at the end.
  void place_outputs() {
    for (uint32_t i = 0; i < outputs_.size(); ++i) place_at(output_slots_[i], outputs_[i], none);
  }

  // Has `tensor` in a slot of the signature, where `old` lies (none: nothing), if it is made at each call and nothing
  // reads `old` once it is begun. So, too, the tensors that it is made of by changes.
  void place_at(uint32_t slot, uint32_t tensor, uint32_t old) {
    for (;;) {
      if (const auto obstacle = obstacle_to(tensor, old)) {
        obstacles_[{slot, tensor}] = *obstacle;
        return;
      }
      const uint32_t step = tensors_[tensor].made_by, base = base_of(step, tensor);
      tensors_[tensor].slot = slot;
      if (base == none || tensors_[base].last_use != step || !may_replace(items_[step], base, tensor)) return;
      tensor = base;
    }
  }

  // Why a value is not made where it is to be, and of Why::read by whom that is read.
  struct Obstacle {
    Why why = Why::given;
    Plan::NodeRef reader = {};
  };

  // Of what no step of a call makes.
  std::optional<Obstacle> fixed(const Tensor &t) const {
    if (t.made_by == none) return Obstacle{Why::given};
    if (items_[t.made_by].prepared) return Obstacle{Why::prepared};
    return std::nullopt;
  }
  // What reads `t` behind item `number`.
  std::optional<Obstacle> read_behind(uint32_t number, const Tensor &t) const {
    if (t.last_use == none) return Obstacle{Why::kept};
    if (t.last_use <= number) return std::nullopt;
    const Plan::Step &reader = items_[t.last_use].step;
    return Obstacle{Why::read, reader.origins.empty() ? reader.node : reader.origins.front().node};
  }

  // Why `t` cannot be made where `old` lies (none: where nothing lies), if so.
  std::optional<Obstacle> obstacle_to(uint32_t t, uint32_t old) const {
    const Tensor &made = tensors_[t];
    if (const auto obstacle = fixed(made)) return obstacle;
    if (made.slot != none) return Obstacle{Why::elsewhere};
    if (old == none) return std::nullopt;
    if (const auto obstacle = read_behind(writers_[t].front(), tensors_[old])) return obstacle;
    const bool in_step = std::ranges::all_of(writers_[t], [&](uint32_t writer) {
      return may_replace(items_[writer], old, t) && !is_read_behind_base(writer, old, t);
    });
    return in_step ? std::nullopt : std::optional(Obstacle{Why::order});
  }

  // Why item `number` does not make tensor `made` where `base` lies, of which it changes a part.
  Obstacle obstacle_to_change(uint32_t number, uint32_t base, uint32_t made) const {
    const Tensor &t = tensors_[base];
    const auto obstacle_of_it = fixed(t);
    const bool may_be_written =
        is_donated(t) || std::ranges::any_of(write_backs_, [&](const WriteBack &w) { return w.input == base; });
    if (obstacle_of_it && !may_be_written) return *obstacle_of_it;
    if (t.lies_in != none || tensors_[made].lies_in != none) return {Why::shared};
    if (const auto obstacle = read_behind(number, t)) return *obstacle;
    if (!may_replace(items_[number], base, made)) return {Why::order};
    const auto known = obstacles_.find({tensors_[made].slot, base});
    if (known != obstacles_.end()) return known->second;
    return obstacle_of_it.value_or(Obstacle{Why::elsewhere});
  }

  // Whether the item reads `old` when what `made` is made of, another tensor, has been brought where `made` is.
  bool is_read_behind_base(uint32_t number, uint32_t old, uint32_t made) const {
    const Item &item = items_[number];
    const uint32_t base = base_of(number, made);
    return base != none && base != old &&
           (std::ranges::find(item.tensors, old) != item.tensors.end() ||
            std::ranges::any_of(item.bases, [&](const auto &other) { return other.second == old; }));
  }

  // Whether the step may find `old` where it makes `made`: of one size, and read in step with it, or not at all.
  bool may_replace(const Item &item, uint32_t old, uint32_t made) const {
    if (tensors_[old].size_bytes != tensors_[made].size_bytes) return false;
    const auto k = static_cast<size_t>(std::ranges::find(item.tensors, made) - item.tensors.begin());
    for (uint32_t j = 0; j < item.tensors.size(); ++j) {
      if (item.tensors[j] != old || item.step.kind == StepKind::copy) continue;
      if (item.step.kind != StepKind::launch) {
        const auto place = item.in_place.find(k);
        if (place == item.in_place.end() || place->second != j) return false;
        continue;
      }
      const std::vector<uint32_t> &in_place = contract_of_(item.step.kernel).buffers[k].in_place;
      if (std::ranges::find(in_place, j) == in_place.end()) return false;
    }
    return true;
  }

  uint32_t add_slot(SlotKind kind, uint32_t index, const Tensor &t) {
    plan_.slots.push_back({kind, index, t.size_bytes});
    return static_cast<uint32_t>(plan_.slots.size() - 1);
  }

  Status add_step(uint32_t number) {
    Item &item = items_[number];
    for (size_t k = 0; k < item.tensors.size(); ++k)
      if (item.written[k] && tensors_[item.tensors[k]].slot == none) place_result(number, k);
    for (const auto &[k, base] : item.bases) {
      KILN_ASSIGN(const uint32_t from, slot_of(base));
      const uint32_t to = tensors_[item.tensors[k]].slot;
      if (Plan::same_memory(plan_.slots[from], plan_.slots[to]))
        ++plan_.in_place;
      else
        add_copy(from, to, obstacle_to_change(number, base, item.tensors[k]), item.step.origins);
    }
    for (uint32_t tensor : item.tensors) {
      KILN_ASSIGN(const uint32_t slot, slot_of(tensor));
      item.step.slots.push_back(slot);
    }
    const bool is_there =  // already, what is to be copied
        item.step.kind == StepKind::copy &&
        Plan::same_memory(plan_.slots[item.step.slots[0]], plan_.slots[item.step.slots[1]]);
    if (is_there)
      ++plan_.in_place;
    else
      (item.prepared ? plan_.prepare : plan_.steps).push_back(std::move(item.step));
    // Only now: what a step reads must not be where it writes, unless it is in place.
    const auto free_after = [&](uint32_t tensor) {
      Tensor &memory = tensors_[tensors_[tensor].lies_in == none ? tensor : tensors_[tensor].lies_in];
      if (memory.last_use == number) free_result(memory);
    };
    std::ranges::for_each(item.tensors, free_after);
    for (const auto &[k, base] : item.bases) free_after(base);
    return {};
  }

  // What is prepared lives as long as its binding; what a call makes, from its step to its last reader.
  void place_result(uint32_t number, size_t k) {
    Tensor &t = tensors_[items_[number].tensors[k]];
    const bool prepared = items_[number].prepared;
    if (t.lies_in != none) {
      Tensor &memory = tensors_[t.lies_in];
      if (memory.slot == none) place(memory, prepared);
      const Plan::Slot slot = plan_.slots[memory.slot];
      t.slot = add_slot(slot.kind, slot.index, t);
    } else if (const uint32_t old = prepared ? none : dying(number, k); old != none) {
      const Plan::Slot there = plan_.slots[tensors_[old].slot];
      t.slot = add_slot(there.kind, there.index, t);
      tensors_[old].last_use = none;  // its storage is not given back
    } else {
      place(t, prepared);
    }
  }

  // Where nothing else lies.
  void place(Tensor &t, bool prepared) {
    if (prepared) {
      plan_.prepared.push_back({t.size_bytes});
      t.slot = add_slot(SlotKind::prepared, static_cast<uint32_t>(plan_.prepared.size() - 1), t);
    } else if (const uint32_t input = take_donated(t); input != none) {
      t.slot = add_slot(SlotKind::input, input, t);
    } else {
      t.slot = add_slot(SlotKind::arena, pool_.take(t.size_bytes), t);
    }
  }

  // A tensor of the arena that nothing reads after this step, and in whose place the step may make its tensor k: what
  // that is but for some elements, or an operand.
  uint32_t dying(uint32_t number, size_t k) const {
    const Item &item = items_[number];
    const auto dies = [&](uint32_t tensor) {
      const Tensor &t = tensors_[tensor];
      if (t.last_use != number || t.made_by == number || t.lies_in != none || t.slot == none) return false;
      const bool is_own = plan_.slots[t.slot].kind == SlotKind::arena ||
                          (is_donated(t) && t.dtype == tensors_[item.tensors[k]].dtype && t.dtype != DType::none);
      return is_own && may_replace(item, tensor, item.tensors[k]);
    };
    if (const uint32_t base = base_of(number, item.tensors[k]); base != none) return dies(base) ? base : none;
    const auto found = std::ranges::find_if(item.tensors, dies);
    return found == item.tensors.end() ? none : *found;
  }

  // A constant gets its slot from the first that reads it.
  Result<uint32_t> slot_of(uint32_t number) {
    Tensor &t = tensors_[number];
    if (t.slot == none && t.constant) t.slot = add_slot(SlotKind::constant, constant_(t.constant), t);
    if (t.slot == none) return error(Code::internal, "a step reads tensor ", number, ", which no step makes");
    return t.slot;
  }

  void free_result(Tensor &tensor) {
    const Plan::Slot &slot = plan_.slots[tensor.slot];
    if (slot.kind == SlotKind::arena)
      pool_.give_back(slot.index);
    else if (is_donated(tensor))
      free_donated_.push_back(slot.index);
    else
      return;
    tensor.last_use = none;  // a step may name a tensor twice
  }

  // Outputs first: one of them may be an input that is about to be written.
  Status add_final_copies() {
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      KILN_ASSIGN(const uint32_t from, slot_of(outputs_[i]));
      if (from != output_slots_[i])
        add_copy(from, output_slots_[i], obstacle_at(output_slots_[i], outputs_[i]), output_origins_[i]);
    }
    for (const WriteBack &w : write_backs_) {
      const uint32_t input = tensors_[w.input].slot;
      KILN_ASSIGN(const uint32_t made, slot_of(w.source));
      if (made != input)
        add_copy(made, input, obstacle_at(input, w.source), w.origins);
      else if (w.source != w.input)
        ++plan_.in_place;
      plan_.written_inputs.push_back(input);  // inputs have the first slots
    }
    sort_unique(plan_.written_inputs);
    return {};
  }

  Obstacle obstacle_at(uint32_t slot, uint32_t tensor) const {
    const auto found = obstacles_.find({slot, tensor});
    return found == obstacles_.end() ? Obstacle{Why::elsewhere} : found->second;
  }

  void add_copy(uint32_t from, uint32_t to, const Obstacle &obstacle, const std::vector<Plan::Origin> &origins) {
    plan_.steps.push_back({.kind = StepKind::copy,
                           .why = obstacle.why,
                           .slots = {from, to},
                           .node = obstacle.reader,
                           .origins = origins});
  }

  const ContractOf &contract_of_;
  const NumberOfConstant &constant_;
  Plan &plan_;
  StoragePool pool_;
  std::set<uint32_t> donated_;          // inputs
  std::vector<uint32_t> free_donated_;  // those in which nothing lies that is read later
  std::vector<Tensor> tensors_;
  std::vector<Item> items_;
  std::vector<std::vector<uint32_t>> writers_;  // by tensor: items, in order
  std::vector<uint32_t> outputs_;               // tensors
  std::vector<std::vector<Plan::Origin>> output_origins_;
  std::vector<WriteBack> write_backs_;
  std::vector<uint32_t> output_slots_;                           // of outputs
  std::map<std::pair<uint32_t, uint32_t>, Obstacle> obstacles_;  // by slot of the signature and tensor
};

}  // namespace

Status place(StepsToPlace given, const ContractOf &contract_of, const NumberOfConstant &constant, Plan &plan) {
  return Placing(std::move(given), contract_of, constant, plan).run();
}

}  // namespace kiln
