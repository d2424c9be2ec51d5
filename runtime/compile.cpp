#include "runtime/compile.h"

#include "jit/base/build_id.h"
#include "runtime/compile_steps.h"
#include "runtime/entries.h"
#include "runtime/plan/planner.h"
#include "runtime/plan/source.h"
#include "runtime/plan/view_output.h"
#include "runtime/regions/lower_graphs.h"
#include "runtime/regions/region_options.h"
#include "runtime/regions/summary.h"

namespace kiln {

std::string_view build_id() { return build_id_text; }

Result<Kernels> make_code(Work &work, const Graph &given, const GraphPtr &whole, const Target &target,
                          Artifact &artifact) {
  const CompileOptions &options = work.options;
  work.ops.add(*whole);

  // 5 regions; 6 each: decompositions, kernel IR, fusion, schedule, code
  KILN_ASSIGN(ChosenBackends backends, chosen_backends(work, *whole));
  const LowerOptions how{.backend = work.backend(),
                         .region = options.region_options(),
                         .modes = options.modes(),
                         .of_regions = options.of_regions,
                         .functions = &work.functions,
                         .backends = std::move(backends)};
  KILN_ASSIGN(const GraphPtr made, without_views(whole));
  KILN_ASSIGN(LoweredGraphs lowered, run_lowering(work, made, how));
  KILN_TRY(bind_functions(work, lowered));
  KILN_TRY(compile_programs(work, lowered, how.backends));
  KILN_TRY(work.phases.begin("fuse"));
  KILN_ASSIGN(work.report.materialised, fuse(lowered, target));
  work.report.partition = summarize(lowered, how.modes);
  KILN_ASSIGN(Kernels kernels, compile_kernels(work, lowered, target));

  // 7 plan: order, slots, steps
  KILN_TRY(work.phases.begin("plan"));
  KILN_ASSIGN(Planned planned, plan(given, lowered, kernels.of_launch, work.fixed));
  fill(artifact, work, given, *whole, std::move(planned), std::move(kernels.images), std::move(kernels.bytes));
  return kernels;
}

void fill(Artifact &artifact, const Work &work, const Graph &given, const Graph &whole, Planned planned,
          std::vector<Image> images, std::vector<Bytes> kernels) {
  if (work.fixed.sizes.empty()) artifact.source = source_of(whole, given, planned.constants);
  artifact.plan = std::move(planned.plan);
  artifact.contracts = std::move(planned.contracts);
  for (const TensorPtr &constant : planned.constants) artifact.constants.push_back(*constant);
  artifact.graphs = std::move(planned.graphs);
  artifact.programs = std::move(planned.programs);
  artifact.images = std::move(images);
  artifact.kernels = std::move(kernels);
}

Result<Compiled> build(Work &work, const Graph &given, const GraphPtr &whole, const Target &target, Artifact artifact) {
  if (work.fixed.sizes.empty()) {
    KILN_TRY(check_regions_named(given, *whole, work.options.of_regions));
    KILN_TRY(check_function_marks(*whole));
    if (work.options.modes().wants_marks() && !has_regions(*whole)) KILN_TRY(warn(work, std::string(nothing_marked)));
  }

  // 5 to 7: code and plan, of the whole or of each piece by itself
  KILN_ASSIGN(const Cuts cuts, cuts_of(work));
  const auto make = cuts.any_in(*whole) ? make_pieces : make_code;
  KILN_ASSIGN(Kernels kernels, make(work, given, whole, target, artifact));

  // 8 artifact, loaded exactly as a hit would be; published in the background
  KILN_ASSIGN(ExecutablePtr executable, finish(work, std::move(artifact), kernels.fresh));
  return Compiled{std::move(executable), std::move(kernels.texts)};
}

Result<Compiled> compile(const CompileEnvironment &env, GraphPtr graph, const CompileOptions &options,
                         CompileReport &report) {
  Work work{env, options, report};
  Phases &phases = work.phases;

  // 1 verify the graph; run the early passes
  KILN_TRY(phases.begin("verify"));
  KILN_ASSIGN(const Target target, choose_target(work));
  report.target = target.name();
  work.questions = questions_of(work, target);
  KILN_TRY(verify(*graph));
  KILN_TRY(check_request(work, *graph));
  KILN_ASSIGN(const std::vector<FixedSizes> entries, wanted_entries(options, *graph));
  KILN_ASSIGN(const Passes passes, select_passes(work));
  work.lower = passes.lower;
  KILN_TRY(warn_of_numerics(work, passes));
  if (!options.dump.empty() || !options.report_html.empty()) {
    KILN_ASSIGN(work.dump, Dump::open(options.dump));
    report.dump = work.dump->folder();
    if (!options.report_html.empty()) report.passes_seen = work.dump;
    KILN_TRY(work.dump->add_given(graph));
  }
  KILN_ASSIGN(graph, run_passes(work, "early passes", passes.early, Stage::pre_grad, std::move(graph)));

  // 2 the graph's key; 3 a record of it
  KILN_ASSIGN(Artifact artifact, identify(work, *graph, passes.late, target));
  Compiled compiled;
  GraphPtr whole;
  KILN_ASSIGN(compiled.executable, look_up(work, *graph, artifact));
  // Late passes may mark nodes: whether there were marks, the compile that made it says.
  if (compiled.executable && options.modes().wants_marks() &&
      compiled.executable->artifact().report_json.find(nothing_marked) != std::string::npos)
    KILN_TRY(warn(work, std::string(nothing_marked)));
  const ExecutablePtr hit = compiled.executable;
  if (!compiled.executable && work.oracle()) {
    KILN_ASSIGN(compiled.executable, finish_oracle(work, *graph, std::move(artifact)));
  } else if (!compiled.executable || (options.verify && !work.oracle())) {
    // 4 the pipeline on the whole graph, nothing decomposed; 5 to 8
    const auto make = [&](Work &part, Artifact begun) -> Result<Compiled> {
      KILN_ASSIGN(whole, run_passes(part, "pre_grad", passes.late, Stage::pre_grad, graph));
      KILN_ASSIGN(whole, run_passes(part, "post_grad", passes.late, Stage::post_grad, std::move(whole)));
      return build(part, *graph, whole, target, std::move(begun));
    };
    if (!compiled.executable) {
      KILN_ASSIGN(compiled, make(work, std::move(artifact)));
    } else {
      KILN_TRY(verify_found(work, compiled.executable->artifact(), [&](Work &again) -> Result<Compiled> {
        KILN_ASSIGN(Artifact begun, identify(again, *graph, passes.late, target));
        return make(again, std::move(begun));
      }));
    }
  }
  KILN_TRY(check_expected_matches(work, hit ? &hit->artifact() : nullptr));
  if (entries.empty()) return compiled;

  // 9 programs for some sizes, beside it
  KILN_TRY(phases.begin("entries"));
  const auto maker = std::make_shared<const EntryMaker>(EntryMaker{
      options, target, graph, whole, passes.lower, functions_of(compiled.executable->artifact().uses, *env.functions),
      backends_of(compiled.executable->artifact().uses, *env.backends), work.questions, work.uncacheable});
  KILN_TRY(make_entries(env, maker, entries, compiled.executable, report));
  return compiled;
}

}  // namespace kiln
