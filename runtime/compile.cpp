#include "runtime/compile.h"

#include <thread>

#include "jit/base/build_id.h"
#include "runtime/cache/key.h"
#include "runtime/graph/json.h"
#include "runtime/passes/builtin.h"
#include "runtime/phases.h"
#include "runtime/plan/planner.h"
#include "runtime/regions/lower.h"
#include "runtime/regions/region.h"

namespace kiln {
namespace {

using PassPtrs = std::vector<std::shared_ptr<const Pass>>;

// What every step of one compile may ask and tell.
struct Work {
  const CompileEnvironment &env;
  const CompileOptions &options;
  CompileReport &report;
  Phases phases{env, report};

  Cache *cache() const { return options.use_cache ? env.cache : nullptr; }
  bool oracle() const { return options.backend == "reference"; }
  uint32_t wanted_texts() const {
    return (options.want_ir ? KILN_CODEGEN_IR : 0) | (options.want_asm ? KILN_CODEGEN_ASM : 0);
  }
};

Status check_backend(std::string_view name) {
  if (name == "cpu" || name == "reference") return {};
  return error(Code::unknown_name, "backend '", name, "' is not known; there are cpu and reference");
}

struct Passes {
  PassPtrs early, late;  // early: run before the key is made, on every compile
};

// The oracle runs the graph as it was given: no pass. Passes of the joint stage run when a graph is differentiated.
Result<Passes> select_passes(const Work &work) {
  KILN_ASSIGN(PassPtrs selected, work.env.passes.select(work.options.passes, work.options.disable_passes));
  Passes passes;
  for (auto &pass : selected) {
    if (work.oracle() || pass->stage == Stage::joint) continue;
    (pass->early() ? passes.early : passes.late).push_back(std::move(pass));
  }
  return passes;
}

Result<GraphPtr> run_passes(Work &work, std::string_view phase, const PassPtrs &passes, Stage stage, GraphPtr graph) {
  KILN_TRY(work.phases.begin(phase));
  for (const auto &pass : passes) {
    if (pass->stage != stage) continue;
    KILN_ASSIGN(graph, run_pass(*pass, graph, work.env.ops, work.report.passes.emplace_back()));
  }
  return graph;
}

// Why no record can be looked up or published for this compile; empty: it can.
Result<std::string> reason_to_bypass(const Work &work, const PassPtrs &late) {
  for (const auto &pass : late) {
    if (pass->uuid || pass->built_in()) continue;
    std::string reason = str_cat("pass '", pass->name, "' of ", pass->plugin, " has no identity");
    if (work.options.strict) return invalid(reason, ", which strict mode needs of every late pass: give it a UUID");
    return reason;
  }
  if (!work.cache()) return std::string("cache off");
  return std::string(work.wanted_texts() ? "texts of kernels are wanted" : "");
}

// Begins the artifact: what it is of and for, and K1 unless it is bypassed.
Result<Artifact> identify(Work &work, const Graph &graph, const PassPtrs &late, const Target &target) {
  KILN_TRY(work.phases.begin("key"));
  Artifact artifact;
  artifact.build_id = build_id();
  artifact.backend = work.options.backend;
  artifact.target = target.name();
  KILN_ASSIGN(work.report.reason, reason_to_bypass(work, late));
  if (!work.report.reason.empty()) {
    work.report.lookup = Outcome::bypass;
    return artifact;
  }
  const KeyOption options[] = {{"fuse", str_cat(work.options.fuse)}};
  KILN_ASSIGN(artifact.components, key_components({graph, options, late, target, artifact.backend, artifact.build_id}));
  artifact.key = work.report.key = key_of(artifact.components);
  return artifact;
}

Result<std::shared_ptr<const Executable>> load(Work &work, std::shared_ptr<const Artifact> artifact) {
  KILN_TRY(work.phases.begin("load"));
  work.report.llvm_loaded = work.env.codegen->in_memory();
  work.report.kernels_distinct = static_cast<uint32_t>(artifact->images.size());
  work.report.launches = 0;
  for (const auto *steps : {&artifact->plan.prepare, &artifact->plan.steps}) {
    for (const Plan::Step &step : *steps) work.report.launches += step.kind == Plan::Step::Kind::launch;
  }
  return Executable::load(std::move(artifact), work.env.ops, work.env.pool, build_id());
}

// The executable of a record of this key, or null: then the report says why there is none.
Result<std::shared_ptr<const Executable>> look_up(Work &work, const Artifact &artifact) {
  using Executables = std::shared_ptr<const Executable>;
  CompileReport &report = work.report;
  if (report.lookup != Outcome::bypass) {
    KILN_TRY(work.phases.begin("lookup"));
    Lookup found = work.cache()->find(artifact.key, artifact.components, artifact.build_id, artifact.target);
    report.lookup = found.outcome;
    report.reason = std::move(found.reason);
    if (found.outcome == Outcome::hit) {
      Result<Executables> executable = load(work, std::move(found.artifact));
      if (executable.ok()) return executable;
      work.env.cache->reject(artifact.key);
      report.lookup = Outcome::reject;
      report.reason = str_cat("the record does not load: ", executable.status().message());
    }
  }
  if (!work.options.require_hit) return Executables();
  work.phases.end();
  Status missing = error(Code::not_cached, "a hit was required: ", name_of(report.lookup), ", ", report.reason);
  missing.info()->report = to_json(report);
  return missing;
}

Result<Kernels> compile_kernels(Work &work, const kernel::Fused &fused, const Target &target) {
  KILN_TRY(work.phases.begin("kernels"));
  const CompileEnvironment &env = work.env;
  const uint32_t threads = work.options.compile_threads;
  KILN_ASSIGN(Kernels kernels,
              kiln::compile_kernels({.fused = fused,
                                     .target = target,
                                     .build_id = build_id(),
                                     .threads = threads ? threads : std::max(1u, std::thread::hardware_concurrency()),
                                     .want = work.wanted_texts(),
                                     .cache = work.cache(),
                                     .progress = env.progress},
                                    *env.codegen));
  work.report.kernels_compiled = static_cast<uint32_t>(kernels.fresh.size());
  work.report.kernels_from_cache = kernels.from_cache;
  return kernels;
}

void publish(const CompileEnvironment &env, std::function<Status()> task) {
  if (env.in_background) {
    env.in_background(std::move(task));
  } else {
    (void)task();  // the cache counts its errors; the compile does not depend on them
  }
}

// Cold executables go the way of warm ones: to bytes, and back from them. `fresh`: the images that no record has yet.
Result<std::shared_ptr<const Executable>> finish(Work &work, Artifact made, std::span<const uint32_t> fresh) {
  KILN_TRY(work.phases.begin("artifact"));
  made.report_json = provenance_json(work.report);
  KILN_ASSIGN(Artifact read, read_artifact(write_artifact(made)));
  const auto artifact = std::make_shared<const Artifact>(std::move(read));
  if (Cache *cache = work.cache()) {
    if (work.report.lookup != Outcome::bypass) publish(work.env, [=] { return cache->publish(*artifact); });
    for (uint32_t i : fresh) publish(work.env, [=] { return cache->publish_kernel(artifact->images[i]); });
  }
  return load(work, artifact);
}

// The oracle: one step that runs the graph.
Result<Compiled> compile_oracle(Work &work, const Graph &graph, Artifact artifact) {
  KILN_TRY(work.phases.begin("plan"));
  artifact.graph_json = write_json(graph);
  KILN_ASSIGN(artifact.plan, plan_reference(graph));
  KILN_ASSIGN(auto executable, finish(work, std::move(artifact), {}));
  return Compiled{std::move(executable), {}};
}

}  // namespace

std::string_view build_id() { return build_id_text; }

Result<Compiled> compile(const CompileEnvironment &env, GraphPtr graph, const CompileOptions &options,
                         CompileReport &report) {
  Work work{env, options, report};
  Phases &phases = work.phases;

  // 1 verify the graph; run the early passes
  KILN_TRY(phases.begin("verify"));
  KILN_TRY(check_backend(report.backend = options.backend));
  KILN_ASSIGN(const Target target, Target::by_name(options.cpu));
  report.target = target.name();
  KILN_TRY(verify(*graph));
  KILN_ASSIGN(const Passes passes, select_passes(work));
  KILN_ASSIGN(graph, run_passes(work, "early passes", passes.early, Stage::pre_grad, std::move(graph)));

  // 2 K1; 3 a record of it
  KILN_ASSIGN(Artifact artifact, identify(work, *graph, passes.late, target));
  KILN_ASSIGN(auto executable, look_up(work, artifact));
  if (executable) return Compiled{std::move(executable), {}};
  if (work.oracle()) return compile_oracle(work, *graph, std::move(artifact));

  // 4 the pipeline on the whole graph, nothing decomposed
  KILN_ASSIGN(GraphPtr whole, run_passes(work, "pre_grad", passes.late, Stage::pre_grad, graph));
  KILN_ASSIGN(whole, run_passes(work, "post_grad", passes.late, Stage::post_grad, std::move(whole)));

  // 5 regions; 6 each: lower passes, the backend's decompositions, kernel IR, fusion, schedule, code
  KILN_ASSIGN(std::vector<Region> regions, partition(std::move(whole), options.backend));
  Region &region = regions.front();  // there is one
  KILN_ASSIGN(region.graph, run_passes(work, "lower", passes.late, Stage::lower, std::move(region.graph)));
  KILN_ASSIGN(region.graph, decompose(std::move(region.graph), env.ops, {}));
  KILN_ASSIGN(region.graph, merge_equal_nodes(std::move(region.graph)));
  KILN_ASSIGN(const Lowered lowered, lower(*region.graph));
  KILN_TRY(phases.begin("fuse"));
  KILN_ASSIGN(const kernel::Fused fused, kernel::fuse(lowered.program, target, {.fuse = options.fuse}));
  KILN_ASSIGN(Kernels kernels, compile_kernels(work, fused, target));

  // 7 plan: order, slots, steps
  KILN_TRY(phases.begin("plan"));
  KILN_ASSIGN(Planned planned, plan(*graph, *region.graph, lowered, fused, kernels.of_launch));

  // 8 artifact, loaded exactly as a hit would be; published in the background
  artifact.plan = std::move(planned.plan);
  for (const TensorPtr &constant : planned.constants) artifact.constants.push_back(*constant);
  artifact.images = std::move(kernels.images);
  artifact.kernels = std::move(kernels.bytes);
  KILN_ASSIGN(executable, finish(work, std::move(artifact), kernels.fresh));
  return Compiled{std::move(executable), std::move(kernels.texts)};
}

}  // namespace kiln
