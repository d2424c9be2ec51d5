#include "runtime/exec/executable.h"

#include <algorithm>

#include "runtime/exec/device_place.h"
#include "runtime/exec/host_place.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/sizes.h"
#include "runtime/graph/json.h"
#include "runtime/plan/planner.h"
#include "runtime/regions/backend.h"

namespace kiln {
namespace {

bool same_types(const std::vector<Plan::Argument> &a, const std::vector<Plan::Argument> &b) {
  return std::ranges::equal(a, b, [](const Plan::Argument &x, const Plan::Argument &y) {
    return x.dtype == y.dtype && x.dims == y.dims;  // layouts are the plan's own: the step reads and writes by them
  });
}

// The graph of a reference step. Its kernels rely on the types and sizes that the graph has: the plan must say the
// same.
Result<GraphPtr> read_reference_graph(const Artifact &artifact, const OpTable &ops) {
  const Plan &plan = artifact.plan;
  const auto is_reference = [](const Plan::Step &s) { return s.kind == Plan::Step::Kind::reference; };
  if (std::ranges::none_of(plan.steps, is_reference)) return GraphPtr();
  Result<GraphPtr> read = read_json(artifact.graph_json, ops);
  if (read.status().code() == Code::out_of_memory) return read.take_status();  // which says nothing of the artifact
  if (!read.ok()) return error(Code::corrupt, "the artifact's graph cannot be read: ", read.status().message());
  const GraphPtr graph = std::move(read).value();
  KILN_ASSIGN(const Plan expected, plan_reference(*graph));
  const EqualSizes checked(plan.checks);
  const auto is_checked = [&](const Plan::Check &c) { return checked.contains(c.left, c.right); };
  if (!same_types(plan.inputs, expected.inputs) || !same_types(plan.parameters, expected.parameters) ||
      !same_types(plan.outputs, expected.outputs) || plan.symbols != expected.symbols ||
      plan.written_inputs != expected.written_inputs || !std::ranges::all_of(expected.checks, is_checked))
    return error(Code::corrupt, "the artifact's graph and its plan have different signatures");
  return graph;
}

}  // namespace

Status Executable::check_callable() const {
  if (has_code(*artifact_)) return {};
  return invalid("the graph was compiled without code, to be looked at; compile it with code to call it");
}

Result<std::shared_ptr<const Executable>> Executable::load(std::shared_ptr<const Artifact> artifact, const OpTable &ops,
                                                           std::shared_ptr<ThreadPool> pool, std::string_view build_id,
                                                           OpenDevice open_device) {
  if (artifact->build_id != build_id)
    return error(Code::incompatible, "the artifact is of build ", artifact->build_id, ", this is build ", build_id);
  KILN_ASSIGN(const BackendInfo *backend, find_backend(artifact->backend));
  auto executable = std::make_shared<Executable>();
  if (backend->on_device()) {
    executable->place_ = std::make_unique<DevicePlace>(*artifact, std::move(open_device));
  } else {
    KILN_ASSIGN(executable->place_, HostPlace::load(*artifact));
  }
  KILN_ASSIGN(executable->graph_, read_reference_graph(*artifact, ops));
  executable->sizes_ = std::make_shared<const PlanSizes>(artifact->plan);
  executable->outputs_ = std::make_shared<BufferRecycler>();
  executable->artifact_ = std::move(artifact);
  executable->pool_ = std::move(pool);
  return std::shared_ptr<const Executable>(std::move(executable));
}

}  // namespace kiln
