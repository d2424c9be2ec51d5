#include "runtime/exec/executable.h"

#include <algorithm>

#include "runtime/exec/memory.h"
#include "runtime/exec/perf_map.h"
#include "runtime/exec/sizes.h"
#include "runtime/graph/json.h"
#include "runtime/regions/backend.h"

namespace kiln {
namespace {

Status check_machine(const Artifact &artifact, std::string_view build_id) {
  if (artifact.build_id != build_id)
    return error(Code::incompatible, "the artifact is of build ", artifact.build_id, ", this is build ", build_id);
  KILN_ASSIGN(const BackendInfo *backend, find_backend(artifact.backend));
  if (artifact.images.empty() || backend->on_device()) return {};  // no code of this processor
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

bool has_code(const Artifact &artifact) {
  return std::ranges::none_of(artifact.images, [](const Image &image) { return image.code->empty(); });
}

}  // namespace

Status Executable::map_images(const Artifact &artifact) {
  const std::string name = str_cat("kiln-", artifact.graph_key.hex().substr(0, 16));
  KILN_ASSIGN(const bool for_perf, perf_map_wanted());
  KILN_ASSIGN(memory_, ImageMemory::load(artifact.images, name, for_perf));
  if (for_perf) write_perf_map(memory_, artifact.images, name);
  for (size_t i = 0; i < artifact.images.size(); ++i)
    entries_.push_back(reinterpret_cast<kiln_kernel_fn>(reinterpret_cast<uintptr_t>(memory_.entry(i))));
  return {};
}

Status Executable::check_callable() const {
  if (has_code(*artifact_)) return {};
  return invalid("the graph was compiled without code, to be looked at; compile it with code to call it");
}

Result<std::shared_ptr<const DeviceProgram>> Executable::device_program() const {
  const std::lock_guard lock(program_mutex_);
  if (program_) return program_;
  if (!open_device_) return error(Code::no_device, "nothing was given that opens a device of ", artifact_->backend);
  KILN_ASSIGN(std::shared_ptr<Device> device, open_device_());
  KILN_ASSIGN(program_, DeviceProgram::load(std::move(device), *artifact_));
  return program_;
}

Result<std::shared_ptr<const Executable>> Executable::load(std::shared_ptr<const Artifact> artifact, const OpTable &ops,
                                                           std::shared_ptr<ThreadPool> pool, std::string_view build_id,
                                                           OpenDevice open_device) {
  KILN_TRY(check_machine(*artifact, build_id));
  auto executable = std::make_shared<Executable>();
  executable->on_device_ = find_backend(artifact->backend).value()->on_device();
  executable->open_device_ = std::move(open_device);
  KILN_ASSIGN(executable->graph_, read_reference_graph(*artifact, ops));
  if (!executable->on_device_ && has_code(*artifact)) KILN_TRY(executable->map_images(*artifact));
  executable->sizes_ = std::make_shared<const PlanSizes>(artifact->plan);
  executable->outputs_ = std::make_shared<BufferRecycler>();
  executable->artifact_ = std::move(artifact);
  executable->pool_ = std::move(pool);
  return std::shared_ptr<const Executable>(std::move(executable));
}

}  // namespace kiln
