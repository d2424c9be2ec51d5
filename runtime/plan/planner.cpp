#include "runtime/plan/planner.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "runtime/graph/json.h"
#include "runtime/ops/nested.h"
#include "runtime/plan/node_names.h"
#include "runtime/plan/order.h"
#include "runtime/plan/placing.h"
#include "runtime/plan/risks.h"
#include "runtime/plan/signature_plan.h"

namespace kiln {
namespace {

using kernel::Launch;
using SlotKind = Plan::Slot::Kind;
using StepKind = Plan::Step::Kind;

// What the plans of one compile share.
struct Shared {
  const Graph &keyed;
  const FixedAs &fixed;
  const LoweredGraphs &graphs;
  // By graph and region: the image of its first launch, among `images`.
  std::vector<std::vector<size_t>> first_launch;
  std::span<const uint32_t> images;
  std::span<const Piece> pieces = {};  // that the first graph's regions are
  PieceParts parts = {};               // what their programs use
  ContractsMaker contracts = {};
  std::vector<TensorPtr> constants = {};
  std::map<const TensorData *, uint32_t> constant_numbers = {};

  // As JSON, each once: what steps of kind reference run.
  std::vector<std::string> reference_graphs = {};
  std::map<std::pair<Digest, std::string>, uint32_t> reference_numbers = {};

  std::map<uint32_t, Program> programs = {};

  // `backend`: which registered one runs it, with which options; empty: none.
  uint32_t reference_graph(const Graph &graph, const std::string &backend = {}) {
    const auto number = static_cast<uint32_t>(reference_graphs.size());
    const auto [known, is_new] = reference_numbers.try_emplace(std::pair(digest_of(graph), backend), number);
    if (is_new) reference_graphs.push_back(write_json(graph));
    return known->second;
  }

  const Contract &contract_of(uint32_t kernel) const {
    return pieces.empty() ? contracts.of(kernel) : parts.contracts[kernel];
  }

  uint32_t constant(const TensorPtr &data) {
    const auto [number, is_new] = constant_numbers.try_emplace(data.get(), static_cast<uint32_t>(constants.size()));
    if (is_new) constants.push_back(data);
    return number->second;
  }
};

// Names of the nodes of `lowered`, which is what `part` of `whole` is, or a graph equal to it.
NodeNames names_in(const NodeNames &outer, const LoweredGraph &lowered, const Graph &whole, const Region &part) {
  return {outer.keyed, outer.prefix, lowered.given.get(), &whole, part.nodes};
}

// One graph's plan. Its tensors are those of all its regions; one that crosses a border is the same on both sides.
class Planner {
 public:
  Planner(Shared &shared, size_t graph, NodeNames names, Plan signature)
      : shared_(shared), whole_{graph, shared.graphs.graphs[graph], std::move(names)}, plan_(std::move(signature)) {
    for (uint32_t i = 0; i < plan_.symbols.size(); ++i) symbol_number_[plan_.symbols[i].name] = i;
  }

  Result<Plan> run() {
    add_arguments();
    KILN_TRY(add_regions(whole_));
    const Graph &graph = *whole_.lowered.graph;
    for (const GraphOutput &output : graph.outputs())
      to_place_.outputs.push_back({whole_.tensor_of(output.value), origin_of(whole_, *graph.find(output.value.node))});
    KILN_TRY(place(
        std::move(to_place_), [this](uint32_t kernel) -> const Contract & { return shared_.contract_of(kernel); },
        [this](const TensorPtr &constant) { return shared_.constant(constant); }, plan_));
    return std::move(plan_);
  }

 private:
  // A graph whose regions are steps of this plan: the plan's own, or that of a part of it.
  struct Scope {
    const size_t number;
    const LoweredGraph &lowered;
    const NodeNames names;
    std::map<ValueId, uint32_t> values = {};   // tensors of arguments
    std::map<ValueId, uint32_t> yielded = {};  // and of what regions yield, dense; of arguments, too

    // Where a region yields it, else of an argument.
    uint32_t tensor_of(ValueId value) const {
      const auto found = yielded.find(value);
      return found != yielded.end() ? found->second : values.at(value);
    }
    // An argument as it lies.
    uint32_t argument_or(ValueId value) const {
      const auto argument = values.find(value);
      return argument != values.end() ? argument->second : tensor_of(value);
    }
  };
  using Item = StepsToPlace::Item;

  static Plan::Origin origin_of(const Scope &scope, std::string_view node, std::string_view op) {
    return scope.names.origin(node, op, *scope.lowered.given);
  }
  static Plan::Origin origin_of(const Scope &scope, const Node &node) {
    constexpr std::string_view names[] = {"input", "parameter", "constant"};
    return origin_of(scope, node.name,
                     node.op ? std::string_view(node.op->name) : names[static_cast<size_t>(node.kind)]);
  }

  uint32_t add_tensor(Expr size_bytes) {
    tensors_.push_back({std::move(size_bytes)});
    return static_cast<uint32_t>(tensors_.size() - 1);
  }
  uint32_t add_tensor(DType dtype, const Shape &dims, const Shape &strides) {
    const uint32_t tensor = add_tensor(span_bytes(dtype, dims, strides));
    tensors_[tensor].dtype = dtype;
    return tensor;
  }

  // plan_of_signature() made these slots: inputs, then parameters, then outputs.
  void add_arguments() {
    const Graph &graph = *whole_.lowered.graph;
    uint32_t next_slot = 0;
    for (std::span<const uint32_t> side : {graph.inputs(), graph.parameters()}) {
      for (uint32_t id : side) {
        const TensorType &type = graph.find(id)->results[0];
        const uint32_t tensor = add_tensor(type.dtype, type.dims, type.strides);
        tensors_[tensor].slot = next_slot++;
        if (graph.find(id)->kind == Node::Kind::parameter) once_.insert(tensor);
        whole_.values[{id, 0}] = tensor;
      }
    }
  }

  Status add_regions(Scope &scope) {
    for (size_t r = 0; r < scope.lowered.regions.size(); ++r) {
      const LoweredRegion &region = scope.lowered.regions[r];
      switch (region.region.kind) {
        case Region::Kind::code:
          add_code(scope, region, shared_.first_launch[scope.number][r]);
          break;
        case Region::Kind::control:
          KILN_TRY(add_control(scope, region.region));
          break;
        case Region::Kind::part:
          KILN_TRY(add_part(scope, region.region));
          break;
        case Region::Kind::reference:
          KILN_TRY(add_reference(scope, region.region));
          break;
        case Region::Kind::program:
          KILN_TRY(add_program(scope, region.region));
          break;
        case Region::Kind::piece:
          KILN_TRY(add_piece(scope, r));
          break;
      }
    }
    return {};
  }

  // The steps of a piece's plan as steps of this one: what its slots hold are tensors of this plan, which places them.
  Status add_piece(Scope &scope, size_t number) {
    const Piece &piece = shared_.pieces[number];
    const Region &region = piece.region;
    std::vector<uint32_t> constants;
    for (const TensorData &constant : piece.program->constants)
      constants.push_back(shared_.constant(TensorPtr(piece.program, &constant)));
    Plan plan = plan_of(piece, *scope.lowered.graph, shared_.parts.add(piece.program), constants, scope.names);
    for (Plan::Check &check : plan.checks) {
      const auto is_same = [&](const Plan::Check &c) { return c.left == check.left && c.right == check.right; };
      if (std::ranges::none_of(plan_.checks, is_same)) plan_.checks.push_back(std::move(check));
    }
    plan_.in_place += plan.in_place;
    const auto first_risk = static_cast<uint32_t>(plan_.risks.size());
    std::ranges::move(plan.risks, std::back_inserter(plan_.risks));
    std::vector<uint32_t> symbols;
    for (const Plan::Symbol &symbol : plan.symbols) {
      const auto known = symbol_number_.find(symbol.name);
      if (known == symbol_number_.end()) return unbound(symbol.name);
      symbols.push_back(known->second);
    }
    const auto first_nested = static_cast<uint32_t>(plan_.nested.size());
    std::ranges::move(plan.nested, std::back_inserter(plan_.nested));

    // Slots of one storage share it as they did: a step may find in one what another left there.
    std::vector<uint32_t> arena, prepared;
    for (const Plan::Storage &storage : plan.arena) arena.push_back(add_tensor(storage.size_bytes));
    for (const Plan::Storage &storage : plan.prepared) prepared.push_back(add_tensor(storage.size_bytes));
    std::vector<uint32_t> here;  // tensors, by the piece's slots
    for (const Plan::Slot &slot : plan.slots) {
      if (slot.kind == SlotKind::input && slot.index < region.inputs.size())
        here.push_back(scope.argument_or(region.inputs[slot.index]));
      else if (slot.kind == SlotKind::parameter)
        here.push_back(scope.values.at(region.parameters[slot.index]));
      else
        here.push_back(add_tensor(slot.size_bytes));
      if (slot.kind == SlotKind::arena) tensors_[here.back()].lies_in = arena[slot.index];
      if (slot.kind == SlotKind::prepared) tensors_[here.back()].lies_in = prepared[slot.index];
      if (slot.kind == SlotKind::constant) tensors_[here.back()].constant = shared_.constants[slot.index];
      if (slot.kind == SlotKind::output) scope.yielded[region.outputs[slot.index]] = here.back();
    }
    for (std::vector<Plan::Step> *steps : {&plan.prepare, &plan.steps})
      for (Plan::Step &step : *steps) {
        Item item{.prepared = steps == &plan.prepare};
        for (Plan::Nested &nested : step.nested) nested.plan += first_nested;
        for (uint32_t &symbol : step.symbols) symbol = symbols[symbol];
        for (uint32_t &risk : step.risks) risk += first_risk;
        for (const uint32_t slot : step.slots) item.tensors.push_back(here[slot]);
        if (step.kind == StepKind::copy && writes_back(plan, step) && is_yielded(tensors_[item.tensors[0]])) {
          to_place_.write_backs.push_back({item.tensors[0], item.tensors[1], std::move(step.origins)});
          continue;
        }
        item.written = written_by(step, plan_.nested, shared_.parts.contracts);
        step.slots.clear();
        item.step = std::move(step);
        items_.push_back(std::move(item));
      }
    for (const uint32_t input : plan.written_inputs)
      plan_.written_inputs.push_back(tensors_[scope.values.at(region.inputs[input])].slot);
    return {};
  }

  // Whether the copy gives an input its new value: it is the last of the steps that have to do with it.
  static bool writes_back(const Plan &plan, const Plan::Step &copy) {
    const Plan::Slot &input = plan.slots[copy.slots[1]];
    if (input.kind != SlotKind::input) return false;
    const auto uses_it = [&](const Plan::Step &step) {
      return std::ranges::any_of(step.slots, [&](uint32_t s) { return Plan::same_memory(plan.slots[s], input); });
    };
    return std::none_of(&copy + 1, plan.steps.data() + plan.steps.size(), uses_it);
  }
  // What another piece makes, in memory that it shares with nothing.
  static bool is_yielded(const StepsToPlace::Tensor &t) {
    return t.slot == StepsToPlace::none && t.lies_in == StepsToPlace::none && !t.constant;
  }

  Status add_part(Scope &outer, const Region &part) {
    const size_t number = shared_.graphs.number_of(outer.lowered, part.graph);
    const LoweredGraph &lowered = shared_.graphs.graphs[number];
    Scope inner{number, lowered, names_in(outer.names, lowered, *outer.lowered.graph, part)};
    const Graph &graph = *inner.lowered.graph;
    for (size_t i = 0; i < part.inputs.size(); ++i)
      inner.values[{graph.inputs()[i], 0}] = outer.argument_or(part.inputs[i]);
    for (size_t i = 0; i < part.parameters.size(); ++i)
      inner.values[{graph.parameters()[i], 0}] = outer.argument_or(part.parameters[i]);
    KILN_TRY(add_regions(inner));
    for (size_t i = 0; i < part.outputs.size(); ++i)
      outer.yielded[part.outputs[i]] = inner.tensor_of(graph.outputs()[i].value);
    return {};
  }

  void add_code(Scope &scope, const LoweredRegion &code, size_t first_launch) {
    const kernel::Fused &fused = code.fused;
    std::vector<uint32_t> here(fused.tensors.size(), StepsToPlace::none);  // tensors of the region
    const auto meet = [&](std::span<const uint32_t> numbers, std::span<const ValueId> values) {
      for (size_t i = 0; i < numbers.size(); ++i) {
        // Of a scan that is a kernel, operands are dense, as a control node's.
        here[numbers[i]] = code.turn ? scope.tensor_of(values[i]) : scope.argument_or(values[i]);
      }
    };
    meet(code.lowered.inputs, code.region.inputs);
    meet(code.lowered.parameters, code.region.parameters);
    for (uint32_t t = 0; t < fused.tensors.size(); ++t) {
      if (here[t] == StepsToPlace::none)
        here[t] = add_tensor(fused.tensors[t].dtype, fused.tensors[t].dims, fused.tensors[t].strides);
    }
    for (const Lowered::Constant &constant : code.lowered.constants) {
      tensors_[here[constant.tensor]].constant = constant.data;
      once_.insert(here[constant.tensor]);
    }

    const auto first_risk = static_cast<uint32_t>(plan_.risks.size());
    for (const Lowered::Risk &risk : code.lowered.risks) {
      const kernel::Program::Def &def = code.lowered.program.defs[risk.def];
      const Plan::NodeRef node = scope.names.find(def.node);
      plan_.risks.push_back({node, scope.names.op(node, def.op), risk.bits});
    }
    const std::vector<std::vector<uint32_t>> risks = risks_of_launches(code.lowered, fused.launches);

    const std::vector<std::vector<uint32_t>> made_of =
        kernel::defs_of(fused.launches, fused.tensors, code.lowered.program);

    const size_t first_item = items_.size();
    for (size_t i = 0; i < fused.launches.size(); ++i) {
      const Launch &launch = fused.launches[i];
      Item item{.prepared = launch.prepared};
      for (const uint32_t def : made_of[i]) {
        const kernel::Program::Def &made = code.lowered.program.defs[def];
        Plan::Origin origin = origin_of(scope, made.node, made.op);
        // What a composite op is made of comes from one node.
        if (item.step.origins.empty() || item.step.origins.back() != origin)
          item.step.origins.push_back(std::move(origin));
      }
      item.step.kernel = shared_.images[first_launch + i];
      for (const std::string &name : launch.symbols) item.step.symbols.push_back(symbol_number_.at(name));
      for (const uint32_t risk : risks[i]) item.step.risks.push_back(first_risk + risk);
      for (size_t b = 0; b < launch.buffers.size(); ++b) {
        item.tensors.push_back(here[launch.buffers[b]]);
        item.written.push_back(launch.kernel->buffers[b].space == kernel::Buffer::Space::out);
      }
      for (const Launch::Base &base : launch.bases) item.bases[base.buffer] = here[base.tensor];
      // What other regions make is a parameter of this one, if it follows from parameters, though they may make it at
      // each call.
      for (size_t b = 0; b < item.tensors.size(); ++b)
        item.prepared = item.prepared && (item.written[b] || once_.contains(item.tensors[b]));
      for (size_t b = 0; item.prepared && b < item.tensors.size(); ++b)
        if (item.written[b]) once_.insert(item.tensors[b]);
      items_.push_back(std::move(item));
    }
    for (size_t i = 0; i < code.lowered.outputs.size(); ++i)
      scope.yielded[code.region.outputs[i]] = here[code.lowered.outputs[i]];
    for (const Lowered::WriteBack &w : code.lowered.write_backs) {
      const uint32_t input = scope.values.at(code.region.inputs[w.input]);
      const kernel::Tensor &t = fused.tensors[w.source];
      if (t.strides != row_major_strides(t.dims))
        keep_between_elements(here[w.source], input, items_.size() - first_item);
      to_place_.write_backs.push_back({here[w.source], input, {origin_of(scope, w.node, "copy_")}});
    }
  }

  // What lies between the elements of a strided input is not the call's: whatever its new value is made in begins as
  // it. Of the last `count` items, one makes that.
  void keep_between_elements(uint32_t source, uint32_t input, size_t count) {
    for (size_t i = items_.size(); count-- > 0;) {
      Item &item = items_[--i];
      const auto made = std::ranges::find(item.tensors, source);
      const auto k = static_cast<size_t>(made - item.tensors.begin());
      if (made == item.tensors.end() || !item.written[k]) continue;
      source = item.bases.try_emplace(k, input).first->second;
      if (source == input) return;
    }
  }

  Status add_control(Scope &scope, const Region &region) {
    const Node &node = *scope.lowered.graph->find(region.node);
    if (node.op->flags & op_flags::resolves) {
      Item item{
          .step = {.kind = StepKind::resolve}, .tensors = {scope.tensor_of(region.inputs[0])}, .written = {false}};
      for (const ResolvedSymbol &symbol : node.symbols) item.step.symbols.push_back(symbol_number_.at(symbol.name));
      scope.yielded[region.outputs[0]] = item.tensors[0];  // the count itself
      items_.push_back(std::move(item));
      return {};
    }
    if (node.op->name == "scan") return add_scan(scope, region);
    const bool is_loop = node.op->name == "while";
    Item item{.step = {.kind = is_loop ? StepKind::loop : StepKind::branch}};
    if (is_loop) {
      item.step.node = scope.names.find(node.name);
      item.step.scan.turns = node.attrs.find("max_turns")->second.i64();
    }
    for (ValueId operand : region.inputs) item.tensors.push_back(scope.tensor_of(operand));
    item.written.resize(region.inputs.size());
    // The results, and for a loop where every other turn leaves them.
    add_results(scope, region, node, item);
    if (is_loop) add_spare(node, node.results.size(), item);
    for (const auto attr : is_loop ? std::array{"cond_graph", "body_graph"} : std::array{"then_graph", "else_graph"}) {
      KILN_ASSIGN(Plan::Nested nested, nested_of(scope, node, attr));
      item.step.nested.push_back(std::move(nested));
    }
    items_.push_back(std::move(item));
    return {};
  }

  Status add_scan(Scope &scope, const Region &region) {
    const Node &node = *scope.lowered.graph->find(region.node);
    const ScanOperands operands = scan_operands(node.attrs, node.inputs.size());
    Item item{.step = {.kind = StepKind::scan,
                       .scan = {operands.carried, operands.sequences, operands.reverse,
                                turns_of(*scope.lowered.graph, node)}}};
    item.step.node = scope.names.find(node.name);
    for (ValueId operand : region.inputs) item.tensors.push_back(scope.tensor_of(operand));
    item.written.resize(region.inputs.size());
    add_results(scope, region, node, item);
    add_spare(node, operands.carried, item);
    KILN_ASSIGN(Plan::Nested turn, nested_of(scope, node, "body_graph"));
    item.step.nested.push_back(std::move(turn));
    items_.push_back(std::move(item));
    return {};
  }

  // The node on its reference kernel: a nested plan of that one step.
  Status add_reference(Scope &scope, const Region &region) {
    const Node &node = *scope.lowered.graph->find(region.node);
    Item item{.step = {.kind = StepKind::call, .node = scope.names.find(node.name)}};
    for (const ValueId operand : region.inputs) item.tensors.push_back(scope.tensor_of(operand));
    item.written.resize(region.inputs.size());
    add_results(scope, region, node, item);
    for (const auto &[result, operand] : region.in_place) item.in_place[region.inputs.size() + result] = operand;
    const uint32_t graph = shared_.reference_graph(*region.graph);
    return add_step_of(graph, *region.graph, scope, region.inputs, std::move(item));
  }

  // The region as its backend runs it: likewise.
  Status add_program(Scope &scope, const Region &region) {
    KILN_ASSIGN(const GraphPtr step, without_parameters(*region.graph));
    const uint32_t number = shared_.reference_graph(*step, region.options.backend_text());
    Program program{.backend = region.backend, .parameters = static_cast<uint32_t>(region.parameters.size())};
    if (region.blob) program.blob = region.blob;
    shared_.programs.emplace(number, std::move(program));
    const Graph &whole = *scope.lowered.graph;
    Item item{.step = {.kind = StepKind::call, .node = scope.names.find(whole.find(region.nodes[0])->name)}};
    std::vector<ValueId> operands = region.inputs;
    operands.insert(operands.end(), region.parameters.begin(), region.parameters.end());
    for (const ValueId operand : operands) {
      const TensorType &type = whole.type(operand);
      const bool lies_dense = type.strides == row_major_strides(type.dims);
      item.tensors.push_back(lies_dense ? scope.argument_or(operand) : scope.tensor_of(operand));
    }
    item.written.resize(operands.size());
    for (const ValueId output : region.outputs) {
      add_spare(whole.type(output), item);
      scope.yielded[output] = item.tensors.back();
    }
    return add_step_of(number, *step, scope, operands, std::move(item));
  }

  // A call of the plan that runs the graph as one step.
  Status add_step_of(uint32_t number, const Graph &graph, const Scope &scope, std::span<const ValueId> operands,
                     Item item) {
    const auto [known, is_new] = references_.try_emplace(number, static_cast<uint32_t>(plan_.nested.size()));
    if (is_new) {
      KILN_ASSIGN(Plan plan, plan_reference(graph));
      plan.steps[0].graph = number;
      plan_.nested.push_back(std::move(plan));
    }
    Plan::Nested nested{.plan = known->second};
    for (const Plan::Symbol &s : plan_.nested[nested.plan].symbols)
      nested.symbols.push_back(scope.lowered.graph->type(operands[s.input]).dims[s.dim]);
    item.step.nested.push_back(std::move(nested));
    items_.push_back(std::move(item));
    return {};
  }

  void add_results(Scope &scope, const Region &region, const Node &node, Item &item) {
    const size_t first = item.tensors.size();
    add_spare(node, node.results.size(), item);
    for (size_t k = 0; k < node.results.size(); ++k) scope.yielded[region.outputs[k]] = item.tensors[first + k];
  }
  // Tensors of the types of the node's first results.
  void add_spare(const Node &node, size_t count, Item &item) {
    for (size_t k = 0; k < count; ++k) add_spare(node.results[k], item);
  }
  void add_spare(const TensorType &type, Item &item) {
    item.tensors.push_back(add_tensor(type.dtype, type.dims, row_major_strides(type.dims)));
    item.written.push_back(true);
  }

  // A nested plan, made once however many steps run it, and what its symbols are at `node`.
  Result<Plan::Nested> nested_of(const Scope &scope, const Node &node, std::string_view attr);

  Shared &shared_;
  Scope whole_;
  Plan plan_;
  StepsToPlace to_place_;
  std::vector<StepsToPlace::Tensor> &tensors_ = to_place_.tensors;
  std::vector<Item> &items_ = to_place_.items;
  std::set<uint32_t> once_;                  // tensors that are there once parameters are bound
  std::map<size_t, uint32_t> nested_;        // by number of the graph
  std::map<uint32_t, uint32_t> references_;  // likewise, of reference graphs
  std::map<std::string, uint32_t> symbol_number_;
};

// Calls visit(lowered graph, its number, names of its nodes) for a graph and the parts that it is cut into, each as
// often as it stands there.
template <class Visit>
Status for_each_part(const LoweredGraphs &graphs, size_t number, const NodeNames &names, const Visit &visit) {
  const LoweredGraph &lowered = graphs.graphs[number];
  KILN_TRY(visit(lowered, number, names));
  for (const LoweredRegion &region : lowered.regions) {
    if (region.region.kind != Region::Kind::part) continue;
    const size_t part = graphs.number_of(lowered, region.region.graph);
    KILN_TRY(for_each_part(graphs, part, names_in(names, graphs.graphs[part], *lowered.graph, region.region), visit));
  }
  return {};
}

Result<Plan> plan_graph(Shared &shared, size_t number, NodeNames names) {
  const LoweredGraph &whole = shared.graphs.graphs[number];
  KILN_ASSIGN(Plan signature, plan_of_signature(number == 0 ? shared.keyed : *whole.given, names));
  if (number == 0) list_donated(shared.keyed, signature);
  if (number == 0 && !shared.fixed.sizes.empty()) {
    add_checks(*shared.fixed.whole, names, signature);
    KILN_TRY(fix_sizes(shared.fixed.sizes, signature));
  }
  add_resolved_symbols(*whole.graph, names, signature);
  KILN_TRY(for_each_part(shared.graphs, number, names, [&](const LoweredGraph &part, size_t, const NodeNames &in) {
    for (const Node &node : part.graph->nodes())
      for (const ResolvedSymbol &symbol : node.symbols)
        if (!whole.graph->resolver(symbol.name))
          return Status(error(Code::internal, "node '", in.full(node.name), "' resolves symbol '", symbol.name,
                              "', which the graph that its part was cut from does not have"));
    add_checks(*part.graph, in, signature);
    return Status();
  }));
  const auto add_contracts = [&](const LoweredGraph &part, size_t at, const NodeNames &) -> Status {
    for (size_t r = 0; r < part.regions.size(); ++r) {
      const std::span<const uint32_t> images = shared.images.subspan(shared.first_launch[at][r]);
      KILN_TRY(shared.contracts.add(part.regions[r].fused, images, signature));
    }
    return {};
  };
  KILN_TRY(for_each_part(shared.graphs, number, names, add_contracts));
  return Planner(shared, number, std::move(names), std::move(signature)).run();
}

Result<Plan::Nested> Planner::nested_of(const Scope &scope, const Node &node, std::string_view attr) {
  const size_t number = shared_.graphs.number_of(scope.lowered, node.attrs.find(attr)->second.graph());
  if (!nested_.contains(number)) {
    KILN_ASSIGN(Plan plan,
                plan_graph(shared_, number, {shared_.keyed, str_cat(scope.names.full(node.name), ".", attr, ".")}));
    nested_[number] = static_cast<uint32_t>(plan_.nested.size());
    plan_.nested.push_back(std::move(plan));
  }
  Plan::Nested nested{.plan = nested_.at(number)};
  for (const Plan::Symbol &s : plan_.nested[nested.plan].symbols) {
    if (s.resolved)
      nested.symbols.emplace_back(0);
    else
      nested.symbols.push_back(dim_of_input(*scope.lowered.graph, node, s.input, s.dim));
  }
  return nested;
}

}  // namespace

Result<Planned> plan(const Graph &given, const LoweredGraphs &graphs, std::span<const uint32_t> images,
                     const FixedAs &fixed) {
  Shared shared{.keyed = given, .fixed = fixed, .graphs = graphs, .first_launch = {}, .images = images};
  size_t launches = 0;
  for (const LoweredGraph &graph : graphs.graphs) {
    std::vector<size_t> &first = shared.first_launch.emplace_back();
    for (const LoweredRegion &region : graph.regions) {
      first.push_back(launches);
      launches += region.fused.launches.size();
    }
  }
  KILN_ASSIGN(Plan plan, plan_graph(shared, 0, {given, ""}));
  return Planned{std::move(plan), std::move(shared.contracts).finish(), std::move(shared.constants),
                 std::move(shared.reference_graphs), std::move(shared.programs)};
}

Result<Linked> link(const Graph &given, const GraphPtr &whole, std::span<const Piece> pieces, const FixedAs &fixed) {
  LoweredGraphs graphs;
  LoweredGraph &cut = graphs.graphs.emplace_back(LoweredGraph{.given = whole, .graph = whole});
  for (const Piece &piece : pieces) cut.regions.push_back({.region = piece.region});
  Shared shared{.keyed = given,
                .fixed = fixed,
                .graphs = graphs,
                .first_launch = {std::vector<size_t>(pieces.size())},
                .images = {},
                .pieces = pieces};
  KILN_ASSIGN(Plan plan, plan_graph(shared, 0, {given, ""}));
  return Linked{std::move(plan), std::move(shared.constants), std::move(shared.parts)};
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
