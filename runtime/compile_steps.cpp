#include "runtime/compile_steps.h"

#include "runtime/backends/rows.h"
#include "runtime/cache/key.h"
#include "runtime/functions/binding.h"
#include "runtime/functions/function.h"
#include "runtime/graph/json.h"
#include "runtime/ops/registered.h"
#include "runtime/outside_compiler.h"
#include "runtime/plan/node_names.h"
#include "runtime/plan/planner.h"
#include "runtime/report/step_report.h"

namespace kiln {
namespace {

Result<ExecutablePtr> load(Work &work, std::shared_ptr<const Artifact> artifact) {
  KILN_TRY(work.phases.begin("load"));
  work.report.llvm_loaded = work.env.modules->of(cpu_backend).in_memory();
  work.report.kernels_distinct = static_cast<uint32_t>(artifact->images.size());
  work.report.launches = 0;
  for (const auto *steps : {&artifact->plan.prepare, &artifact->plan.steps}) {
    for (const Plan::Step &step : *steps) work.report.launches += step.kind == Plan::Step::Kind::launch;
  }
  work.report.device_kernels = device_kernels(*artifact);
  work.report.in_place = in_place_json(artifact->plan);
  work.report.made = artifact->report_json;
  const BackendInfo &backend = work.backend();
  return Executable::load(
      std::move(artifact), work.env.ops, work.env.pool, build_id(),
      [modules = work.env.modules, &backend](uint32_t index) { return modules->device(backend, index); },
      *work.env.functions, *work.env.backends);
}

// A record has the names of the graph that it was made of; what is loaded and saved has those of the graph at hand.
void name_as(const Graph &graph, Artifact &artifact) {
  name_nodes(graph, artifact.plan);
  name_nodes(graph, artifact.source.names);
  const Result<const BackendInfo *> backend = find_backend(artifact.backend);
  if (backend.ok() && !(*backend)->makes_code()) artifact.graphs = {write_json(graph)};
}

// Whether a load failed for what the record holds, rather than for what this process lacks.
bool is_of_record(Code code) {
  return code != Code::io && code != Code::out_of_memory && code != Code::no_device && code != Code::cancelled;
}

void publish(const CompileEnvironment &env, std::function<Status()> task) {
  if (env.in_background) {
    env.in_background(std::move(task));
  } else {
    (void)task();  // the cache counts its errors; the compile does not depend on them
  }
}

Status check_devices(const Work &work, const Graph &graph) {
  for (const auto &[side, ids] : {std::pair("input", graph.inputs()), std::pair("parameter", graph.parameters())})
    for (const uint32_t id : ids) {
      const Node &node = *graph.find(id);
      if (const uint32_t device = node.results[0].device; device != 0)
        return invalid(side, " '", node.name, "' is on device ", device, "; backend ", work.options.backend,
                       " has device 0 alone");
    }
  return {};
}

Status check_no_tokens(const Graph &graph) {
  for (const uint32_t id : graph.inputs())
    if (const Node &node = *graph.find(id); node.results[0].dtype == DType::token)
      return invalid("input '", node.name, "' is a token, which cannot be bound; op token begins one");
  for (const GraphOutput &output : graph.outputs())
    if (graph.type(output.value).dtype == DType::token)
      return invalid("output '", output.name, "' is a token, which cannot be bound; an effect whose token nothing ",
                     "takes runs all the same");
  return {};
}

Status check_fallback(const Work &work) {
  const Modes modes = work.options.modes();
  if (!modes.cut() || modes.fallback != Fallback::reference || !work.backend().on_device()) return {};
  return invalid("option 'fallback' is 'reference', whose kernels run on the host; backend ", work.options.backend,
                 " takes kernel or error");
}

// The functions that a graph speaks of: those that nodes name, and, where nodes may fall back, what ops fall back to.
// By "function 'f'" and "fallback of 'matmul'"; null: there is none.
std::map<std::string, FunctionPtr> functions_of(const Work &work, const Graph &graph) {
  std::map<std::string, FunctionPtr> functions;
  if (work.oracle()) return functions;  // which runs what ops mean
  const FunctionTable &table = *work.env.functions;
  for (const std::string &name : functions_named(graph))
    functions.emplace(str_cat("function '", name, "'"), table.find(name));
  const bool falls_back = table.has_fallbacks() && !work.backend().on_device() &&
                          (work.options.modes().cut() || !Refusals(work.backend()).takes(graph));
  if (!falls_back) return functions;
  for (const auto &[name, op] : ops_of(graph))
    if (FunctionPtr function = table.fallback(name))
      functions.emplace(str_cat("fallback of '", name, "'"), std::move(function));
  return functions;
}

// The registered backends that a graph speaks of: "backend 'b'" with their identities.
Result<std::map<std::string, std::string>> identities_of_backends(const Work &work, const Graph &graph) {
  KILN_ASSIGN(const ChosenBackends chosen, chosen_backends(work, graph));
  std::map<std::string, std::string> identities;
  for (const auto &[name, backend] : chosen) {
    KILN_ASSIGN(identities[str_cat("backend '", name, "'")], backend.backend->whole_identity());
  }
  return identities;
}

// What regions are marked for is a registered backend, or the compile's own.
Status check_of_backends(const Work &work, const Graph &graph) {
  KILN_ASSIGN(const ChosenBackends chosen, chosen_backends(work, graph));
  if (chosen.empty() || !work.backend().on_device()) return {};
  return invalid("backend '", chosen.begin()->first, "' works in the host's memory, and backend ", work.backend().name,
                 ", which is to have what it does not take, on a device");
}

Status check_of_regions(const Work &work) {
  const NamedRegionOptions &named = work.options.of_regions;
  const Modes modes = work.options.modes();
  for (const auto &[option, value] : named) {
    const std::string_view phase = phase_named_by(option);
    const bool has_regions =
        phase.empty() ? modes.cut() : (phase == "forward" ? modes.forward : modes.backward) != Mode::all;
    if (!has_regions)
      return invalid("option '", option, "': under mode 'all' there are no regions",
                     phase.empty() ? "" : " of that phase", "; expected mode 'marked' or 'except_fallback'");
  }
  return {};
}

}  // namespace

Status warn(Work &work, std::string text) {
  const bool ends = work.env.warning && work.env.warning(text);
  work.report.warnings.push_back(std::move(text));
  return ends ? error(Code::cancelled, "the host cancelled the compile") : Status();
}

Result<Target> choose_target(const Work &work) {
  work.report.backend = work.options.backend;
  if (!work.env.backends->find(work.options.backend))
    KILN_TRY(find_backend(work.options.backend, work.env.backends->names()).status());
  const BackendInfo *backend = &work.backend();
  KILN_ASSIGN(Target target, target_of(*backend, work.options.cpu, work.options.arch));
  if (!target.on_device() || !target.arch.empty()) return target;
  if (!work.options.code) return Target::device("native");  // whichever that is
  Result<std::shared_ptr<Device>> device = work.env.modules->device(*backend, 0);
  if (!device.ok()) return device.take_status().with_prefix(str_cat("arch 'native' of backend ", backend->name, ": "));
  return Target::device((*device)->arch());
}

Status check_request(const Work &work, const Graph &graph) {
  KILN_TRY(check_no_tokens(graph));
  KILN_TRY(check_devices(work, graph));
  KILN_TRY(check_fallback(work));
  KILN_TRY(check_of_regions(work));
  if (!work.oracle()) KILN_TRY(check_function_marks(graph));
  KILN_TRY(check_of_backends(work, graph));
  return cuts_of(work).status();
}

Status bind_functions(const Work &work, LoweredGraphs &graphs) {
  for (LoweredGraph &lowered : graphs.graphs)
    for (LoweredRegion &lowered_region : lowered.regions) {
      Region &region = lowered_region.region;
      if (region.function.empty()) continue;
      const Node &node = *lowered.graph->find(region.node);
      const FunctionPtr function = work.functions.find(region.function);
      const std::string op = str_cat(" [", node.op->name, "]: ");
      if (!function)
        return error(Code::unknown_name, "no function is named '", region.function, "'", work.functions.known())
            .at_node(node.name, op);
      Result<FunctionBinding> binding = bind_function(function->signature, *lowered.graph, node);
      if (!binding.ok())
        return binding.take_status()
            .with_prefix(
                str_cat("function '", function->name, "' does not fit: signature '", function->signature.text, "', "))
            .at_node(node.name, op);
      for (const FunctionBinding::Argument &argument : binding->arguments)
        if (argument.kind == FunctionSignature::Argument::Kind::inout)
          region.in_place[argument.array - node.inputs.size()] = argument.operand;
    }
  return {};
}

Result<ChosenBackends> chosen_backends(const Work &work, const Graph &graph) {
  if (work.oracle()) return choose_backends(*work.env.backends, {}, work.options.of_backends);
  std::map<std::string, std::string> named;
  if (work.options.modes().cut()) named = backends_named(graph, work.options.of_regions);
  const std::string_view own = work.backend().name;
  std::set<std::string> names;
  for (const auto &[name, by] : named) {
    if (name == own) continue;
    if (find_backend(name).ok())
      return invalid(by, ": a region's backend is ", name, ", and the compile's is ", own,
                     "; beside it there may be registered ones");
    if (!work.env.backends->find(name))
      return error(Code::unknown_name, by, ": no backend is named '", name, "'", work.env.backends->known());
    names.insert(name);
  }
  if (std::string registered = work.options.registered_backend(); !registered.empty())
    names.insert(std::move(registered));
  return choose_backends(*work.env.backends, names, work.options.of_backends);
}

Status compile_programs(Work &work, LoweredGraphs &graphs, const ChosenBackends &backends) {
  for (const auto &[name, backend] : backends) work.backends.insert(name);
  if (!work.options.code || backends.empty()) return {};
  KILN_TRY(work.phases.begin("programs"));
  std::map<const Graph *, std::shared_ptr<const Bytes>> made;  // a graph is one backend's
  for (LoweredGraph &lowered : graphs.graphs)
    for (LoweredRegion &lowered_region : lowered.regions) {
      Region &region = lowered_region.region;
      if (region.kind != Region::Kind::program) continue;
      std::shared_ptr<const Bytes> &blob = made[region.graph.get()];
      if (!blob) {
        const ChosenBackend &chosen = backends.find(region.backend)->second;
        Result<Bytes> bytes = chosen.backend->functions->compile(
            region.graph, chosen.options_with(region.options.backend_options, region.options.rounding));
        if (!bytes.ok()) return bytes.take_status().with_prefix(str_cat("region '", *region.name, "': "));
        blob = std::make_shared<const Bytes>(std::move(bytes).value());
      }
      region.blob = blob;
    }
  return {};
}

Result<Cuts> cuts_of(const Work &work) {
  for (const std::string &name : work.options.split_at)
    if (!work.env.ops.find(name))
      return error(Code::unknown_name, "option 'split_at' has '", name, "'; no op is called so");
  return Cuts{work.options.split_at};
}

namespace {

// The oracle runs the graph as given: whoever registered passes, and reads its results as theirs, is told.
Status warn_of_passes_left_out(Work &work, const PassPtrs &selected) {
  if (!work.oracle()) return {};
  PassPtrs registered;
  std::ranges::copy_if(selected, std::back_inserter(registered), [](const auto &pass) { return !pass->built_in(); });
  if (registered.empty()) return {};
  return warn(work, str_cat("backend reference runs the graph as given, without ",
                            join(registered, ", ", [](const auto &pass) { return described(*pass); })));
}

}  // namespace

Result<Passes> select_passes(Work &work) {
  KILN_ASSIGN(PassPtrs selected, work.env.passes.select(work.options.passes, work.options.disable_passes));
  Passes passes;
  KILN_TRY(warn_of_passes_left_out(work, selected));
  for (auto &pass : selected) {
    if (work.oracle() || (pass->on_request && !work.options.algebra)) continue;
    if (pass->stage == Stage::lower) passes.lower.push_back(pass);
    (pass->early() ? passes.early : passes.late).push_back(std::move(pass));
  }
  return passes;
}

Status warn_of_numerics(Work &work, const Passes &passes) {
  for (const PassPtrs *some : {&passes.early, &passes.late})
    for (const auto &pass : *some)
      if (pass->numerics && (!work.env.is_news || work.env.is_news(*pass)))
        KILN_TRY(warn(work, str_cat(described(*pass), " changes what is computed (KILN_PASS_NUMERICS)")));
  return {};
}

Result<GraphPtr> run_passes(Work &work, std::string_view phase, const PassPtrs &passes, Stage stage, GraphPtr graph) {
  KILN_TRY(work.phases.begin(phase));
  std::optional<Digest> made;
  for (const auto &pass : passes) {
    if (pass->stage != stage) continue;
    PassRun &run = work.report.passes.emplace_back(run_of(*pass));
    const PassHost host = work.host_of(*pass);
    const GraphPtr before = graph;
    KILN_ASSIGN(graph, run_pass(*pass, before, work.ops, run, {}, &host));
    if (work.dump) KILN_TRY(work.dump->add({pass->early() ? "early" : phase, pass->name, "", before, graph}));
    if (!made || graph != before) made = digest_of(*graph);
    run.digest = *made;
  }
  // Of the first stage, the early passes, the key tells: it hashes the graph anyway.
  std::vector<StageDigest> &stages = work.report.stages;
  if (!stages.empty()) stages.push_back({std::string(phase), made.value_or(stages.back().digest)});
  return graph;
}

Result<LoweredGraphs> run_lowering(Work &work, const GraphPtr &graph, const LowerOptions &how) {
  KILN_TRY(work.phases.begin("lower"));
  std::vector<PassRun> &runs = work.report.passes;
  for (const auto &pass : work.lower) runs.push_back(run_of(*pass));
  const PassHost host = work.lower.empty() ? PassHost() : work.host_of(*work.lower.front());  // all are late
  LowerPasses lower{.passes = work.lower, .runs = std::span(runs).last(work.lower.size()), .host = &host};
  if (work.dump)
    lower.observe = [&](std::string_view pass, const std::string &part, const GraphPtr &before, const GraphPtr &after) {
      const std::string of = work.piece.empty() || part.empty() ? work.piece + part : work.piece + ", " + part;
      return work.dump->add({"lower", pass, of, before, after});
    };
  KILN_ASSIGN(LoweredGraphs lowered, lower_graphs(graph, work.ops, how, lower));
  for (const LoweredGraph &each : lowered.graphs)
    for (const LoweredRegion &region : each.regions)
      if (region.region.kind == Region::Kind::reference && region.region.function.empty())
        KILN_TRY(ask_for_parts(*region.region.graph, work.ops));
  work.report.stages.push_back({"lower", digest_of(lowered)});
  return lowered;
}

Bypass bypass_of(const Work &work, const Graph &graph, const PassPtrs &late) {
  for (const auto &pass : late) {
    if (pass->uuid || pass->built_in()) continue;
    const std::string reason = str_cat("pass '", pass->name, "' of ", pass->plugin, " has no identity");
    return {reason, str_cat(reason, ", which strict mode needs of every late pass: give it a UUID")};
  }
  for (const auto &[name, op] : ops_of(graph))
    if (const RegisteredOp *own = registered(*op); own && !own->has_uuid) {
      const std::string reason = str_cat("op '", name, "' has no identity");
      return {reason, str_cat(reason, ", which strict mode needs of every op: give it a UUID")};
    }
  for (const auto &[what, function] : functions_of(work, graph))
    if (function && !function->has_uuid) {
      const std::string reason = str_cat("function '", function->name, "' has no identity");
      return {reason, str_cat(reason, ", which strict mode needs of every function: give it a UUID")};
    }
  if (const Result<ChosenBackends> chosen = chosen_backends(work, graph); chosen.ok())
    for (const auto &[name, backend] : *chosen)
      if (!backend.backend->has_uuid) {
        const std::string reason = str_cat("backend '", name, "' has no identity");
        return {reason, str_cat(reason, ", which strict mode needs of every backend: give it a UUID")};
      }
  if (!work.options.dump.empty()) return {"dump"};
  if (!work.options.report_html.empty()) return {"report_html"};
  if (!work.cache()) {
    const std::string_view refusal = work.options.use_cache ? work.env.cache_refusal : "";
    const std::string reason = refusal.empty() ? "cache off" : std::string(refusal);
    return {reason, str_cat("strict mode needs the cache: ", reason)};
  }
  if (!work.options.code) return {"no code is wanted"};
  return {work.wanted_texts() ? "texts of kernels are wanted" : ""};
}

Result<Artifact> identify(Work &work, const Graph &graph, const PassPtrs &late, const Target &target) {
  KILN_TRY(work.phases.begin("key"));
  Artifact artifact;
  artifact.build_id = build_id();
  artifact.backend = work.backend().name;
  artifact.target = target.name();
  const auto bypassed = [&](Bypass bypass) -> Result<Artifact> {
    work.report.lookup = Outcome::bypass;
    work.report.reason = std::move(bypass.reason);
    if (work.options.strict && !bypass.strict.empty()) return invalid(bypass.strict);
    work.report.stages.push_back({"early passes", digest_of(graph)});
    return artifact;
  };
  if (Bypass bypass = bypass_of(work, graph, late); !bypass.reason.empty()) return bypassed(std::move(bypass));
  const std::string options = keyed_text(work.options);
  KILN_ASSIGN(auto used, identities_of_backends(work, graph));
  for (const auto &[what, function] : functions_of(work, graph))
    used[what] = function ? str_cat(function->name, ", ", function->identity) : "";
  std::string uncacheable;
  const KeyInputs key{
      graph, options, late, target, work.options.backend, artifact.build_id, std::move(used), work.questions.get()};
  KILN_ASSIGN(artifact.components, key_components(key, uncacheable));
  if (!uncacheable.empty()) {
    artifact.components.clear();
    return bypassed({uncacheable, str_cat(uncacheable, ", and strict mode lets no pass bypass the cache")});
  }
  artifact.graph_key = work.report.key = graph_key(artifact.components);
  work.report.stages.push_back({"early passes", artifact.components.front().digest});  // that of the graph
  return artifact;
}

// Whether what was found was made with others than those that are here now: then it is not this compile's.
bool differs(Work &work, std::span<const Use> uses, std::string_view prefix = "") {
  const std::optional<DifferingUse> other = differing_use(uses, work.env.ops, *work.env.functions, *work.env.backends);
  if (!other) return false;
  work.report.lookup = other->is_missing ? Outcome::reject : Outcome::miss;
  work.report.reason = str_cat(prefix, other->reason);
  return true;
}

// The compiler of an artifact's kernels outside of Kiln's own build; "": there is none.
std::string compiler_of(const Artifact &artifact) { return artifact.images.empty() ? "" : artifact.images[0].compiler; }

// Whether another one is here now. Where there is none, what was compiled is as good as ever.
bool is_of_another_compiler(Work &work, const Artifact &artifact) {
  const std::string made_by = compiler_of(artifact);
  if (made_by.empty()) return false;
  std::string now = remembered_compiler(work.cache()->dir());
  if (now.empty()) {
    if (Result<std::string> told = work.env.modules->of(work.backend()).compiler(); told.ok()) now = std::move(*told);
    if (!now.empty()) remember_compiler(work.cache()->dir(), now);
  }
  if (now.empty() || now == made_by) return false;
  work.report.lookup = Outcome::miss;
  work.report.reason = str_cat("its kernels were compiled by ", made_by, ", and ", now, " is here");
  return true;
}

// Of an artifact that is there already: what its passes asked.
ArtifactPtr found(Work &work, ArtifactPtr artifact) {
  for (const Answer &answer : artifact->answers) work.asked.insert(answer.question);
  work.report.answers = artifact->answers;
  return artifact;
}

Result<ArtifactPtr> find_artifact(Work &work, const Graph &graph, const Artifact &artifact) {
  CompileReport &report = work.report;
  if (report.lookup == Outcome::bypass) return ArtifactPtr();
  const auto cancels = [&] {
    if (!work.env.progress || !work.env.progress("in flight")) return Status();
    report.reason = "in flight";
    return error(Code::cancelled, "the compile was cancelled while it waited for another of the same graph");
  };
  const auto suits = [&](const Artifact &other) {
    return differing_answer(other.answers, work.questions.get()).empty();
  };
  KILN_ASSIGN(InFlight::Entered entered, work.cache()->in_flight().enter(artifact.graph_key, cancels, suits));
  if (entered.artifact) {
    // What is made instead is this compile's alone.
    if (differs(work, entered.artifact->uses, "in flight: ")) return ArtifactPtr();
    report.lookup = Outcome::hit;
    report.reason = "in flight";
    const auto own = std::make_shared<Artifact>(*entered.artifact);
    name_as(graph, *own);
    return found(work, own);
  }
  work.lead = std::move(entered.lead);
  Lookup looked = work.cache()->find(artifact.graph_key, artifact.components, artifact.build_id, artifact.target,
                                     work.questions.get());
  report.lookup = looked.outcome;
  report.reason = std::move(looked.reason);
  if (looked.outcome == Outcome::miss && !work.lead)
    report.reason = "in flight, for which a compile inside a compile does not wait";
  if (looked.outcome != Outcome::hit) {
    report.components = artifact.components;
    return ArtifactPtr();
  }
  if (differs(work, looked.artifact->uses) || is_of_another_compiler(work, *looked.artifact)) {
    work.cache()->reject(looked);  // what is made instead has the same key
    return ArtifactPtr();
  }
  name_as(graph, *looked.artifact);
  work.record = std::move(looked);
  return found(work, work.record->artifact);
}

Result<ExecutablePtr> look_up(Work &work, const Graph &graph, const Artifact &artifact) {
  CompileReport &report = work.report;
  if (report.lookup != Outcome::bypass) KILN_TRY(work.phases.begin("lookup"));
  KILN_ASSIGN(const ArtifactPtr found, find_artifact(work, graph, artifact));
  if (found) {
    Result<ExecutablePtr> executable = load(work, found);
    if (executable.ok()) work.lead.found(found);
    if (executable.ok() || !work.record || !is_of_record(executable.status().code())) return executable;
    work.cache()->reject(*work.record);
    report.lookup = Outcome::reject;
    report.reason = str_cat("the record does not load: ", executable.status().message());
  }
  if (!work.options.require_hit) return ExecutablePtr();
  work.phases.end();
  Status missing = error(Code::not_cached, "a hit was required: ", name_of(report.lookup), ", ", report.reason);
  missing.info()->report = to_json(report);
  return missing;
}

// Why no other compile may have what passes made, though all has an identity; empty: it may.
Result<std::string> not_for_others(Work &work) {
  if (!work.uncacheable.empty() && work.options.strict)
    return invalid(work.uncacheable, ": strict mode needs a result that can be cached");
  if (!work.uncacheable.empty() || !work.questions) return work.uncacheable;
  if (const std::string file = work.questions->changed_file(work.asked); !file.empty())
    return str_cat("file '", file, "', which a pass asked for, has changed since");
  return std::string();
}

Result<ArtifactPtr> seal(Work &work, Artifact made, std::span<const uint32_t> fresh) {
  KILN_TRY(work.phases.begin("artifact"));
  made.report_json = provenance_json(work.report, to_json(work.options));
  made.uses = uses_of_backends(made.backend, work.backends, *work.env.backends);
  std::ranges::move(work.ops.uses(), std::back_inserter(made.uses));
  work.functions.add_to(made.uses);
  if (work.questions) {
    KILN_ASSIGN(made.answers, work.questions->answers(work.asked));
    work.report.answers = made.answers;
  }
  std::string unsaved;  // what a pass brought in
  if (const std::string op = work.ops.without_identity(); !op.empty()) unsaved = str_cat("op '", op, "'");
  if (const std::string function = work.functions.without_identity(); !function.empty())
    unsaved = str_cat("function '", function, "'");
  for (const std::string &name : work.backends)
    if (const BackendPtr backend = work.env.backends->find(name); backend && !backend->has_uuid)
      unsaved = str_cat("backend '", name, "'");
  if (!unsaved.empty() && work.options.strict)
    return invalid(unsaved, " has no identity, which strict mode needs of what a compile brings in: give it a UUID");
  if (!unsaved.empty()) unsaved += " has no identity";
  if (unsaved.empty()) {
    KILN_ASSIGN(unsaved, not_for_others(work));
  }
  // Of a piece the whole says it, which then is not saved either.
  if (!unsaved.empty() && work.piece.empty() && work.cache() && work.report.lookup != Outcome::bypass)
    KILN_TRY(warn(work, str_cat("not saved: ", unsaved)));
  KILN_ASSIGN(Artifact read, read_artifact(write_artifact(made)));
  const auto artifact = std::make_shared<const Artifact>(std::move(read));
  if (Cache *cache = work.cache()) {
    if (work.lead && unsaved.empty()) {
      // Written when the task is done or dropped.
      const std::shared_ptr<void> written(nullptr, [=](void *) { cache->in_flight().written(artifact); });
      work.lead.made(artifact);
      std::vector<FileDigests::Known> files;
      if (!work.asked.empty()) files = work.questions->settled_files(work.asked);
      publish(work.env, [=] {
        (void)written;
        KILN_TRY(cache->publish(*artifact, files));
        if (const std::string compiler = compiler_of(*artifact); !compiler.empty())
          remember_compiler(cache->dir(), compiler);
        return Status();
      });
    }
    std::vector<Image> images;
    for (uint32_t i : fresh) images.push_back(artifact->images[i]);
    if (images.empty()) return artifact;
    cache->in_flight().add_kernels(images);
    const std::shared_ptr<void> written(nullptr, [=](void *) { cache->in_flight().kernels_written(images); });
    publish(work.env, [=] { return (void)written, cache->publish_kernels(images); });
  }
  return artifact;
}

Result<ExecutablePtr> finish(Work &work, Artifact made, std::span<const uint32_t> fresh) {
  KILN_ASSIGN(ArtifactPtr artifact, seal(work, std::move(made), fresh));
  return load(work, std::move(artifact));
}

Result<ExecutablePtr> finish_oracle(Work &work, const Graph &graph, Artifact artifact) {
  KILN_TRY(work.phases.begin("plan"));
  work.ops.add(graph);
  KILN_TRY(ask_for_parts(graph, work.ops));
  artifact.graphs = {write_json(graph)};
  KILN_ASSIGN(artifact.plan, plan_reference(graph));
  return finish(work, std::move(artifact), {});
}

}  // namespace kiln
