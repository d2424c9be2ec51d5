#include "runtime/exec/executable.h"

#include <algorithm>

#include "runtime/exec/memory.h"
#include "runtime/exec/perf_map.h"
#include "runtime/exec/sizes.h"
#include "runtime/graph/json.h"

namespace kiln {
namespace {

Status check_machine(const Artifact &artifact, std::string_view build_id) {
  if (artifact.build_id != build_id)
    return error(Code::incompatible, "the artifact is of build ", artifact.build_id, ", this is build ", build_id);
  if (artifact.images.empty()) return {};  // no machine code
  const Result<Target> target = Target::by_name(artifact.target);
  if (!target.ok() || !target->runs_on_host())
    return error(Code::incompatible, "the artifact is for ", artifact.target, ", this machine runs up to ",
                 Target::host().name());
  return {};
}

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

Result<std::shared_ptr<const Executable>> Executable::load(std::shared_ptr<const Artifact> artifact, const OpTable &ops,
                                                           std::shared_ptr<ThreadPool> pool,
                                                           std::string_view build_id) {
  KILN_TRY(check_machine(*artifact, build_id));
  auto executable = std::make_shared<Executable>();
  KILN_ASSIGN(executable->graph_, read_reference_graph(*artifact, ops));
  const std::string name = str_cat("kiln-", artifact->key.hex().substr(0, 16));
  const bool for_perf = perf_map_wanted();
  KILN_ASSIGN(executable->memory_, ImageMemory::load(artifact->images, name, for_perf));
  if (for_perf) write_perf_map(executable->memory_, artifact->images, name);
  for (size_t i = 0; i < artifact->images.size(); ++i)
    executable->entries_.push_back(
        reinterpret_cast<kiln_kernel_fn>(reinterpret_cast<uintptr_t>(executable->memory_.entry(i))));
  executable->sizes_ = std::make_shared<const PlanSizes>(artifact->plan);
  executable->outputs_ = std::make_shared<BufferRecycler>();
  executable->artifact_ = std::move(artifact);
  executable->pool_ = std::move(pool);
  return std::shared_ptr<const Executable>(std::move(executable));
}

}  // namespace kiln
