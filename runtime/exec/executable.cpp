#include "runtime/exec/executable.h"

#include <algorithm>

#include "runtime/backends/backend.h"
#include "runtime/cache/key.h"
#include "runtime/exec/device_place.h"
#include "runtime/exec/host_place.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/node_step.h"
#include "runtime/exec/sizes.h"
#include "runtime/exec/weights.h"
#include "runtime/graph/json.h"
#include "runtime/ops/registered.h"
#include "runtime/plan/planner.h"
#include "runtime/plan/source.h"

namespace kiln {
namespace {

bool same_types(const std::vector<Plan::Argument> &a, const std::vector<Plan::Argument> &b) {
  return std::ranges::equal(a, b, [](const Plan::Argument &x, const Plan::Argument &y) {
    return x.dtype == y.dtype && x.dims == y.dims;  // layouts are the plan's own: the step reads and writes by them
  });
}

std::string_view known_as(std::string_view identity) { return identity.empty() ? "none" : identity; }

// Ops whose own functions run are those that it was made with.
Status check_ops(const Graph &graph, const Artifact &artifact, const OpTable &ops) {
  for (const Node &node : graph.nodes()) {
    const RegisteredOp *op = node.op ? registered(*node.op) : nullptr;
    if (!op) continue;
    const auto use =
        std::ranges::find_if(artifact.uses, [&](const Use &u) { return u.kind == "op" && u.name == op->name; });
    if (use != artifact.uses.end() && use->identity == op->identity) {
      if (op->runs) continue;
      for (const Use &part : artifact.uses)  // it is made of some of them when it runs
        if (part.kind == "op" && part.identity != ops.identity(part.name))
          return error(Code::incompatible, "op '", part.name, "' is ", known_as(ops.identity(part.name)),
                       ", and the artifact was made with ", known_as(part.identity), ", of which op '", op->name,
                       "' may be made");
      continue;
    }
    return error(Code::incompatible, "op '", op->name, "' is ", op->identity, ", and the artifact was made with ",
                 use == artifact.uses.end() ? "none" : use->identity);
  }
  return {};
}

// The one that runs a step's graph is that which it was made with; it fits the node, whatever the artifact says.
Result<BoundFunction> find_function(const Graph &graph, const Artifact &artifact, const FunctionTable &functions) {
  const Node *node = node_of(graph);
  const std::string_view name = node ? function_of(*node) : "";
  if (name.empty()) return BoundFunction();
  const auto use =
      std::ranges::find_if(artifact.uses, [&](const Use &u) { return u.kind == "function" && u.name == name; });
  const std::string made_with = use == artifact.uses.end() ? "none" : use->identity;
  BoundFunction found{.function = functions.find(name)};
  if (!found.function)
    return error(Code::incompatible, "its steps run function '", name, "', which is not there", functions.known(),
                 "; it was made with ", made_with);
  if (made_with != found.function->identity)
    return error(Code::incompatible, "function '", name, "' is ", found.function->identity,
                 ", and the artifact was made with ", made_with);
  Result<FunctionBinding> binding = bind_function(found.function->signature, graph, *node);
  if (!binding.ok())
    return error(Code::corrupt, "function '", name, "' does not fit its step: ", binding.status().message());
  found.binding = std::move(binding).value();
  return found;
}

Result<std::vector<GraphPtr>> read_graphs(const Artifact &artifact, const OpTable &ops) {
  std::vector<GraphPtr> graphs;
  for (const std::string &json : artifact.graphs) {
    Result<GraphPtr> read = read_json(json, ops);
    if (read.status().code() == Code::out_of_memory) return read.take_status();  // which says nothing of the artifact
    if (!read.ok()) return unreadable(read.status(), "the artifact's graph cannot be read", artifact, ops);
    KILN_TRY(check_ops(**read, artifact, ops));
    graphs.push_back(std::move(read).value());
  }
  return graphs;
}

// The kernels of a graph that a step runs on the reference rely on the types and sizes that the graph has: the step's
// plan must say the same.
Status check_reference_steps(const Plan &plan, std::span<const GraphPtr> graphs) {
  for (const Plan::Step &step : plan.steps) {
    if (step.kind != Plan::Step::Kind::reference) continue;
    if (step.graph >= graphs.size())
      return error(Code::corrupt, "a step runs graph ", step.graph, ", expected below ", graphs.size());
    KILN_ASSIGN(const Plan expected, plan_reference(*graphs[step.graph]));
    const EqualSizes checked(plan.checks);
    const auto is_checked = [&](const Plan::Check &c) { return checked.contains(c.left, c.right); };
    if (!same_types(plan.inputs, expected.inputs) || !same_types(plan.parameters, expected.parameters) ||
        !same_types(plan.outputs, expected.outputs) || plan.symbols != expected.symbols ||
        plan.written_inputs != expected.written_inputs || !std::ranges::all_of(expected.checks, is_checked))
      return error(Code::corrupt, "the artifact's graph and its plan have different signatures");
  }
  for (const Plan &nested : plan.nested) KILN_TRY(check_reference_steps(nested, graphs));
  return {};
}

}  // namespace

namespace {

Result<FixedSizes> read_sizes(const std::string &text, const Plan &plan) {
  KILN_ASSIGN(const FixedSizes sizes, parse_fixed_sizes(text));
  for (const auto &[name, size] : sizes) {
    const auto symbol = std::ranges::find(plan.symbols, name, &Plan::Symbol::name);
    if (symbol == plan.symbols.end() || symbol->resolved) return invalid("no input tells '", name, "'");
  }
  return sizes;
}

}  // namespace

// Each by the backend that it was made with.
Status Executable::load_programs(const BackendTable &backends) {
  for (const auto &[graph, made] : artifact_->programs) {
    const auto use = std::ranges::find_if(
        artifact_->uses, [&name = made.backend](const Use &u) { return u.kind == "backend" && u.name == name; });
    const std::string made_with = use == artifact_->uses.end() ? "none" : use->identity;
    const BackendPtr backend = backends.find(made.backend);
    if (!backend)
      return error(Code::incompatible, "its steps run on backend '", made.backend, "', which is not there",
                   backends.known(), "; load or register what it was made with: ", made_with);
    KILN_ASSIGN(const std::string now, backend->whole_identity());
    if (now != made_with)
      return error(Code::incompatible, "backend '", made.backend, "' is ", now, ", and the artifact was made with ",
                   made_with);
    if (made.parameters > graphs_[graph]->inputs().size())
      return error(Code::corrupt, "a program of backend '", made.backend, "' has ", made.parameters,
                   " parameters among ", graphs_[graph]->inputs().size(), " inputs");
    if (made.blob->empty()) continue;  // not compiled: no call is made
    KILN_ASSIGN(std::shared_ptr<const BackendProgram> program, backend->functions->load(made.blob));
    programs_[graph] = {backend, std::move(program), made.parameters};
  }
  return {};
}

Status Executable::load_entries(const OpTable &ops, const OpenDevice &open_device, const FunctionTable &functions,
                                const BackendTable &backends) const {
  std::vector<FixedSizes> sizes;
  for (const Artifact::Entry &entry : artifact_->entries) {
    Result<FixedSizes> read = read_sizes(entry.sizes, plan());
    if (!read.ok()) return error(Code::corrupt, "entry '", entry.sizes, "': ", read.status().message());
    sizes.push_back(std::move(read).value());
  }
  entries_->begin(sizes, plan());
  for (size_t i = 0; i < sizes.size(); ++i) {
    Result<std::shared_ptr<const Executable>> entry =
        load(artifact_->entries[i].artifact, ops, pool_, artifact_->build_id, open_device, functions, backends);
    if (!entry.ok()) return entry.take_status().with_prefix(str_cat("entry '", artifact_->entries[i].sizes, "': "));
    KILN_TRY(entries_->put(i, std::move(entry).value(), plan()));
  }
  return {};
}

std::vector<Artifact::Entry> Executable::made_entries() const {
  std::vector<Artifact::Entry> made;
  for (size_t i = 0; i < entries_->count(); ++i) {
    const Entries::Entry &entry = (*entries_)[i];
    if (entry.state() == Entries::State::made) made.push_back({entry.name(), entry.executable()->shared_artifact()});
  }
  return made;
}

Status Executable::check_callable() const {
  if (has_code(*artifact_)) return place_->check();
  return invalid("the graph was compiled without code, to be looked at; compile it with code to call it");
}

Status Executable::check_any_thread() const {
  if (on_hosts_threads_.empty()) return {};
  return invalid("run: ", on_hosts_threads_, " is not registered for any thread: its runs must be waited for");
}

Result<std::shared_ptr<const Executable>> Executable::load(std::shared_ptr<const Artifact> artifact, const OpTable &ops,
                                                           std::shared_ptr<ThreadPool> pool, std::string_view build_id,
                                                           OpenDevice open_device, const FunctionTable &functions,
                                                           const BackendTable &backends,
                                                           std::shared_ptr<const Weights> weights) {
  if (artifact->build_id != build_id)
    return error(Code::incompatible, "the artifact is of build ", artifact->build_id, ", this is build ", build_id);
  KILN_ASSIGN(const BackendInfo *backend, find_backend(artifact->backend));
  auto executable = std::make_shared<Executable>();
  executable->on_device_ = backend->on_device();
  if (executable->on_device_) {
    executable->place_ = std::make_unique<DevicePlace>(*artifact, backend->device_type, open_device);
  } else {
    KILN_ASSIGN(executable->place_, HostPlace::load(*artifact));
  }
  KILN_ASSIGN(executable->graphs_, read_graphs(*artifact, ops));
  for (const GraphPtr &graph : executable->graphs_) {
    BoundFunction &found = executable->functions_.emplace_back();
    if (!backend->makes_code()) continue;  // the oracle runs what ops mean
    KILN_ASSIGN(found, find_function(*graph, *artifact, functions));
    if (found.function && !found.function->any_thread)
      executable->on_hosts_threads_ = str_cat("function '", found.function->name, "'");
  }
  KILN_TRY(check_reference_steps(artifact->plan, executable->graphs_));
  for (const GraphPtr &graph : executable->graphs_)
    for (const auto &[name, op] : ops_of(*graph))
      if (const RegisteredOp *own = registered(*op); own && own->runs && !own->any_thread)
        executable->on_hosts_threads_ = str_cat("op '", name, "'");
  executable->sizes_ = std::make_shared<const PlanSizes>(artifact->plan);
  executable->outputs_ = std::make_shared<BufferRecycler>();
  executable->artifact_ = std::move(artifact);
  executable->pool_ = std::move(pool);
  KILN_TRY(executable->load_programs(backends));
  KILN_TRY(executable->load_entries(ops, open_device, functions, backends));
  if (weights) KILN_TRY(check_weights(*weights, *executable));
  executable->weights_ = std::move(weights);
  return std::shared_ptr<const Executable>(std::move(executable));
}

}  // namespace kiln
