#include "runtime/exec/executable.h"

#include <algorithm>

#include "runtime/exec/device_place.h"
#include "runtime/exec/host_place.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/sizes.h"
#include "runtime/graph/json.h"
#include "runtime/regions/backend.h"

namespace kiln {
namespace {

// The graph of reference steps, which must have the plan's signature.
Result<GraphPtr> read_reference_graph(const Artifact &artifact, const OpTable &ops) {
  const Plan &plan = artifact.plan;
  const auto is_reference = [](const Plan::Step &s) { return s.kind == Plan::Step::Kind::reference; };
  if (std::ranges::none_of(plan.steps, is_reference)) return GraphPtr();
  KILN_ASSIGN(GraphPtr graph, read_json(artifact.graph_json, ops));
  if (graph->inputs().size() != plan.inputs.size() || graph->parameters().size() != plan.parameters.size() ||
      graph->outputs().size() != plan.outputs.size())
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
