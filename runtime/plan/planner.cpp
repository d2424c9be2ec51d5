#include "runtime/plan/planner.h"

#include <algorithm>
#include <array>
#include <map>

#include "runtime/ops/nested.h"
#include "runtime/plan/node_names.h"
#include "runtime/plan/signature_plan.h"
#include "runtime/plan/storage.h"

namespace kiln {
namespace {

using kernel::Launch;
using SlotKind = Plan::Slot::Kind;
using StepKind = Plan::Step::Kind;
constexpr uint32_t none = UINT32_MAX;

void sort_unique(std::vector<uint32_t> &numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
}

// What the plans of one compile share.
struct Shared {
  const Graph &keyed;
  const LoweredGraphs &graphs;
  // By graph and region: the image of its first launch, among `images`.
  std::vector<std::vector<size_t>> first_launch;
  std::span<const uint32_t> images;
  ContractsMaker contracts = {};
  std::vector<TensorPtr> constants = {};
  std::map<const TensorData *, uint32_t> constant_numbers = {};

  uint32_t constant(const TensorPtr &data) {
    const auto [number, is_new] = constant_numbers.try_emplace(data.get(), static_cast<uint32_t>(constants.size()));
    if (is_new) constants.push_back(data);
    return number->second;
  }
};

// One graph's plan. Its tensors are those of all its regions; one that crosses a border is the same on both sides.
class Planner {
 public:
  Planner(Shared &shared, size_t graph, Plan signature)
      : shared_(shared), number_(graph), lowered_(shared.graphs.graphs[graph]), plan_(std::move(signature)) {
    for (uint32_t i = 0; i < plan_.symbols.size(); ++i) symbol_number_[plan_.symbols[i].name] = i;
  }

  // `prefix` is what names of the graph's nodes begin with.
  Result<Plan> run(const std::string &prefix) {
    add_arguments();
    for (size_t r = 0; r < lowered_.regions.size(); ++r) {
      const LoweredRegion &region = lowered_.regions[r];
      if (region.region.kind == Region::Kind::code)
        add_code(region, shared_.first_launch[number_][r]);
      else
        KILN_TRY(add_control(region.region, prefix));
    }
    find_lifetimes();
    place_outputs();
    for (uint32_t i = 0; i < items_.size(); ++i) KILN_TRY(add_step(i));
    KILN_TRY(add_final_copies());
    plan_.arena = std::move(pool_).finish();
    return std::move(plan_);
  }

 private:
  struct Tensor {
    DType dtype;
    Shape dims, strides;
    uint32_t slot = none;
    uint32_t made_by = none, last_use = 0;  // items; last_use none: final copies read it
    TensorPtr constant = nullptr;
  };
  // What becomes a step.
  struct Item {
    Plan::Step step = {};
    std::vector<uint32_t> tensors = {};  // for the step's slots
    std::vector<bool> written = {};      // which of them
    bool prepared = false;
  };

  uint32_t add_tensor(DType dtype, const Shape &dims, const Shape &strides) {
    tensors_.push_back({dtype, dims, strides});
    return static_cast<uint32_t>(tensors_.size() - 1);
  }

  // plan_of_signature() made these slots: inputs, then parameters, then outputs.
  void add_arguments() {
    const Graph &graph = *lowered_.graph;
    for (std::span<const uint32_t> side : {graph.inputs(), graph.parameters()}) {
      for (uint32_t id : side) {
        const TensorType &type = graph.find(id)->results[0];
        const uint32_t tensor = add_tensor(type.dtype, type.dims, type.strides);
        tensors_[tensor].slot = first_output_slot_++;
        values_[{id, 0}] = tensor;
      }
    }
  }

  // The tensor of a value where a region yields it, else of an argument.
  uint32_t tensor_of(ValueId value) const {
    const auto yielded = yielded_.find(value);
    return yielded != yielded_.end() ? yielded->second : values_.at(value);
  }

  void add_code(const LoweredRegion &code, size_t first_launch) {
    const kernel::Fused &fused = code.fused;
    std::vector<uint32_t> here(fused.tensors.size(), none);  // tensors of the region
    const auto meet = [&](std::span<const uint32_t> numbers, std::span<const ValueId> values) {
      for (size_t i = 0; i < numbers.size(); ++i) {
        const auto argument = values_.find(values[i]);
        // Of a scan that is a kernel, operands are dense, as a control node's.
        here[numbers[i]] = argument != values_.end() && !code.turn ? argument->second : tensor_of(values[i]);
      }
    };
    meet(code.lowered.inputs, code.region.inputs);
    meet(code.lowered.parameters, code.region.parameters);
    for (uint32_t t = 0; t < fused.tensors.size(); ++t) {
      if (here[t] == none)
        here[t] = add_tensor(fused.tensors[t].dtype, fused.tensors[t].dims, fused.tensors[t].strides);
    }
    for (const Lowered::Constant &constant : code.lowered.constants)
      tensors_[here[constant.tensor]].constant = constant.data;

    for (size_t i = 0; i < fused.launches.size(); ++i) {
      const Launch &launch = fused.launches[i];
      Item item{.prepared = launch.prepared};
      item.step.kernel = shared_.images[first_launch + i];
      for (const std::string &name : launch.symbols) item.step.symbols.push_back(symbol_number_.at(name));
      for (size_t b = 0; b < launch.buffers.size(); ++b) {
        item.tensors.push_back(here[launch.buffers[b]]);
        item.written.push_back(launch.kernel->buffers[b].space == kernel::Buffer::Space::out);
      }
      items_.push_back(std::move(item));
    }
    for (size_t i = 0; i < code.lowered.outputs.size(); ++i)
      yielded_[code.region.outputs[i]] = here[code.lowered.outputs[i]];
    for (const Lowered::WriteBack &w : code.lowered.write_backs) {
      const ValueId input = code.region.inputs[w.input];
      write_backs_.push_back({here[w.source], values_.at(input)});
    }
  }

  Status add_control(const Region &region, const std::string &prefix) {
    const Node &node = *lowered_.graph->find(region.node);
    if (node.op->flags & op_flags::resolves) {
      Item item{.step = {.kind = StepKind::resolve}, .tensors = {tensor_of(region.inputs[0])}, .written = {false}};
      for (const ResolvedSymbol &symbol : node.symbols) item.step.symbols.push_back(symbol_number_.at(symbol.name));
      yielded_[region.outputs[0]] = item.tensors[0];  // the count itself
      items_.push_back(std::move(item));
      return {};
    }
    if (node.op->name == "scan") return add_scan(region, prefix);
    const bool is_loop = node.op->name == "while";
    Item item{.step = {.kind = is_loop ? StepKind::loop : StepKind::branch}};
    if (is_loop) {
      item.step.node = NodeNames{shared_.keyed, prefix}.find(node.name);
      item.step.scan.turns = node.attrs.find("max_turns")->second.i64();
    }
    for (ValueId operand : region.inputs) item.tensors.push_back(tensor_of(operand));
    item.written.resize(region.inputs.size());
    // The results, and for a loop where every other turn leaves them.
    add_results(region, node, item);
    if (is_loop) add_spare(node, node.results.size(), item);
    for (const auto attr : is_loop ? std::array{"cond_graph", "body_graph"} : std::array{"then_graph", "else_graph"}) {
      KILN_ASSIGN(Plan::Nested nested, nested_of(node, attr, prefix));
      item.step.nested.push_back(std::move(nested));
    }
    items_.push_back(std::move(item));
    return {};
  }

  Status add_scan(const Region &region, const std::string &prefix) {
    const Node &node = *lowered_.graph->find(region.node);
    const ScanOperands operands = scan_operands(node.attrs, node.inputs.size());
    Item item{
        .step = {.kind = StepKind::scan,
                 .scan = {operands.carried, operands.sequences, operands.reverse, turns_of(*lowered_.graph, node)}}};
    item.step.node = NodeNames{shared_.keyed, prefix}.find(node.name);
    for (ValueId operand : region.inputs) item.tensors.push_back(tensor_of(operand));
    item.written.resize(region.inputs.size());
    add_results(region, node, item);
    add_spare(node, operands.carried, item);
    KILN_ASSIGN(Plan::Nested turn, nested_of(node, "body_graph", prefix));
    item.step.nested.push_back(std::move(turn));
    items_.push_back(std::move(item));
    return {};
  }

  void add_results(const Region &region, const Node &node, Item &item) {
    const size_t first = item.tensors.size();
    add_spare(node, node.results.size(), item);
    for (size_t k = 0; k < node.results.size(); ++k) yielded_[region.outputs[k]] = item.tensors[first + k];
  }
  // Tensors of the types of the node's first results.
  void add_spare(const Node &node, size_t count, Item &item) {
    for (size_t k = 0; k < count; ++k) {
      const TensorType &type = node.results[k];
      item.tensors.push_back(add_tensor(type.dtype, type.dims, row_major_strides(type.dims)));
      item.written.push_back(true);
    }
  }

  // A nested plan, made once however many steps run it, and what its symbols are at `node`.
  Result<Plan::Nested> nested_of(const Node &node, std::string_view attr, const std::string &prefix);

  void find_lifetimes() {
    for (uint32_t i = 0; i < items_.size(); ++i) {
      for (size_t k = 0; k < items_[i].tensors.size(); ++k) {
        Tensor &tensor = tensors_[items_[i].tensors[k]];
        tensor.last_use = i;
        if (items_[i].written[k]) tensor.made_by = i;
      }
    }
    for (const GraphOutput &output : lowered_.graph->outputs()) {
      outputs_.push_back(tensor_of(output.value));
      tensors_[outputs_.back()].last_use = none;
    }
    for (const WriteBack &w : write_backs_) tensors_[w.source].last_use = none;
  }

  // A step writes straight into an output; whatever else an output is, a copy brings there at the end.
  void place_outputs() {
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      Tensor &tensor = tensors_[outputs_[i]];
      const bool made_at_each_call = tensor.made_by != none && !items_[tensor.made_by].prepared;
      if (made_at_each_call && tensor.slot == none) tensor.slot = first_output_slot_ + i;
    }
  }

  uint32_t add_slot(SlotKind kind, uint32_t index, const Tensor &t) {
    plan_.slots.push_back({kind, index, span_bytes(t.dtype, t.dims, t.strides)});
    return static_cast<uint32_t>(plan_.slots.size() - 1);
  }

  Status add_step(uint32_t number) {
    Item &item = items_[number];
    for (size_t k = 0; k < item.tensors.size(); ++k)
      if (item.written[k] && tensors_[item.tensors[k]].slot == none) place_result(item.tensors[k], item.prepared);
    for (uint32_t tensor : item.tensors) {
      KILN_ASSIGN(const uint32_t slot, slot_of(tensor));
      item.step.slots.push_back(slot);
    }
    (item.prepared ? plan_.prepare : plan_.steps).push_back(std::move(item.step));
    // Only now: what a step reads must not be where it writes.
    for (uint32_t tensor : item.tensors)
      if (tensors_[tensor].last_use == number) free_result(tensors_[tensor]);
    return {};
  }

  // What is prepared lives as long as its binding; what a call makes, from its step to its last reader.
  void place_result(uint32_t number, bool prepared) {
    Tensor &t = tensors_[number];
    const Expr bytes = span_bytes(t.dtype, t.dims, t.strides);
    if (prepared) {
      plan_.prepared.push_back({bytes});
      t.slot = add_slot(SlotKind::prepared, static_cast<uint32_t>(plan_.prepared.size() - 1), t);
    } else {
      t.slot = add_slot(SlotKind::arena, pool_.take(bytes), t);
    }
  }

  // A constant gets its slot from the first that reads it.
  Result<uint32_t> slot_of(uint32_t number) {
    Tensor &t = tensors_[number];
    if (t.slot == none && t.constant) t.slot = add_slot(SlotKind::constant, shared_.constant(t.constant), t);
    if (t.slot == none) return error(Code::internal, "a step reads tensor ", number, ", which no step makes");
    return t.slot;
  }

  void free_result(Tensor &tensor) {
    const Plan::Slot &slot = plan_.slots[tensor.slot];
    if (slot.kind != SlotKind::arena) return;
    pool_.give_back(slot.index);
    tensor.last_use = none;  // a step may name a tensor twice
  }

  // Outputs first: one of them may be an input that is about to be written.
  Status add_final_copies() {
    for (uint32_t i = 0; i < outputs_.size(); ++i) {
      KILN_ASSIGN(const uint32_t from, slot_of(outputs_[i]));
      if (from != first_output_slot_ + i) add_copy(from, first_output_slot_ + i);
    }
    for (const WriteBack &w : write_backs_) {
      const uint32_t input = tensors_[w.input].slot;
      add_copy(tensors_[w.source].slot, input);
      plan_.written_inputs.push_back(input);  // inputs have the first slots
    }
    sort_unique(plan_.written_inputs);
    return {};
  }

  void add_copy(uint32_t from, uint32_t to) { plan_.steps.push_back({.kind = StepKind::copy, .slots = {from, to}}); }

  struct WriteBack {
    uint32_t source, input;  // tensors
  };
  Shared &shared_;
  const size_t number_;
  const LoweredGraph &lowered_;
  Plan plan_;
  StoragePool pool_;
  std::vector<Tensor> tensors_;
  std::vector<Item> items_;
  std::vector<uint32_t> outputs_;        // tensors
  std::map<ValueId, uint32_t> values_;   // arguments
  std::map<ValueId, uint32_t> yielded_;  // what regions yield, dense; of arguments, too
  std::vector<WriteBack> write_backs_;
  std::map<size_t, uint32_t> nested_;  // by number of the graph
  std::map<std::string, uint32_t> symbol_number_;
  uint32_t first_output_slot_ = 0;
};

Result<Plan> plan_graph(Shared &shared, size_t number, const std::string &prefix) {
  const LoweredGraph &lowered = shared.graphs.graphs[number];
  const NodeNames names{shared.keyed, prefix};
  KILN_ASSIGN(Plan signature, plan_of_signature(number == 0 ? shared.keyed : *lowered.given, names));
  add_resolved_symbols(*lowered.graph, names, signature);
  add_checks(*lowered.graph, names, signature);
  for (const LoweredRegion &region : lowered.regions)
    for (const Lowered::Risk &risk : region.lowered.risks) {
      const Plan::NodeRef node = names.find(risk.node);
      signature.risks.push_back({node, names.op(node, risk.op), risk.bits});
    }
  for (size_t r = 0; r < lowered.regions.size(); ++r) {
    const std::span<const uint32_t> images = shared.images.subspan(shared.first_launch[number][r]);
    KILN_TRY(shared.contracts.add(lowered.regions[r].fused, images, signature));
  }
  return Planner(shared, number, std::move(signature)).run(prefix);
}

Result<Plan::Nested> Planner::nested_of(const Node &node, std::string_view attr, const std::string &prefix) {
  const GraphPtr &graph = node.attrs.find(attr)->second.graph();
  const size_t number = shared_.graphs.number_of(graph);
  if (!nested_.contains(number)) {
    KILN_ASSIGN(Plan plan, plan_graph(shared_, number, str_cat(prefix, node.name, ".", attr, ".")));
    nested_[number] = static_cast<uint32_t>(plan_.nested.size());
    plan_.nested.push_back(std::move(plan));
  }
  Plan::Nested nested{.plan = nested_.at(number)};
  for (const Plan::Symbol &s : plan_.nested[nested.plan].symbols) {
    if (s.resolved)
      nested.symbols.emplace_back(0);
    else
      nested.symbols.push_back(dim_of_input(*lowered_.graph, node, s.input, s.dim));
  }
  return nested;
}

}  // namespace

Result<Planned> plan(const Graph &given, const LoweredGraphs &graphs, std::span<const uint32_t> images) {
  Shared shared{.keyed = given, .graphs = graphs, .first_launch = {}, .images = images};
  size_t launches = 0;
  for (const LoweredGraph &graph : graphs.graphs) {
    std::vector<size_t> &first = shared.first_launch.emplace_back();
    for (const LoweredRegion &region : graph.regions) {
      first.push_back(launches);
      launches += region.fused.launches.size();
    }
  }
  KILN_ASSIGN(Plan plan, plan_graph(shared, 0, ""));
  return Planned{std::move(plan), std::move(shared.contracts).finish(), std::move(shared.constants)};
}

Result<Plan> plan_reference(const Graph &graph) {
  const NodeNames names{graph, ""};
  KILN_ASSIGN(Plan plan, plan_of_signature(graph, names));
  add_resolved_symbols(graph, names, plan);  // which the step resolves on its way
  Plan::Step step{.kind = StepKind::reference};
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
