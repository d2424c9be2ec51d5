#include "runtime/passes/pipeline.h"

#include <algorithm>
#include <array>

#include "runtime/graph/verify_part.h"
#include "runtime/ops/registered.h"
#include "runtime/passes/builtin.h"
#include "runtime/passes/nested_graphs.h"

namespace kiln {

namespace {

// The built-in passes: one line each, in the order in which they run within their stage. All are of post_grad; those
// after the first have priorities from 1000 on, and so run after the passes of plugins and hosts that name none.
constexpr std::array built_in_passes = {cse_pass,           canonicalize_pass, algebra_pass, fold_constants_pass,
                                        remove_no_ops_pass, merge_views_pass};

// What else may stand where one pass is meant: `kiln inspect --after`.
constexpr std::array<std::string_view, 7> reserved_names = {"all",   "given",     "early", "pre_grad",
                                                            "joint", "post_grad", "lower"};

#ifdef NDEBUG
constexpr bool debug_build = false;
#else
constexpr bool debug_build = true;
#endif

// Outputs that the pass made share storage, with an argument or with one another, become clones: a host binds an array
// to each, and a pass that replaces an op by its operand need not look whether an output is below. A clone is where
// the output's node was.
Result<GraphPtr> clone_shared_outputs(const Graph &before, GraphPtr after, const OpTable &ops, bool is_part,
                                      uint64_t &clones) {
  const std::vector<size_t> shared = outputs_that_came_to_share(before, *after);
  if (shared.empty()) return after;
  Edit edit(after);
  std::vector<GraphOutput> outputs(after->outputs().begin(), after->outputs().end());
  for (size_t at : shared) {
    const Node &was = *before.find(before.outputs()[at].value.node);
    KILN_ASSIGN(const uint32_t clone, edit.add(ops.find("clone"), {{outputs[at].value}}, {}, {}, was.annotations));
    outputs[at].value = {clone, 0};
  }
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  clones += shared.size();
  return edit.finish(!is_part);
}

// The pass's result, verified: built-in passes are checked in debug builds only. A pass that changed nothing leaves the
// graph itself.
Result<GraphPtr> commit(const Pass &pass, const GraphPtr &graph, PassContext &context, PassRun &run) {
  const bool is_part = context.is_part;
  const bool check = debug_build || !pass.built_in();
  if (!context.replacement && !context.edit.has_changed()) return graph;
  const Graph &before = *graph;
  KILN_ASSIGN(GraphPtr after,
              context.replacement ? Result<GraphPtr>(context.replacement) : context.edit.finish(check && !is_part));
  if (check) KILN_TRY(is_part ? verify_part(*after) : verify(*after));  // once: a graph knows that it is verified
  if (check) KILN_TRY(verify_same_signature(before, *after));
  if (check && before.has_effects()) KILN_TRY(verify_same_effects(before, *after, !context.replacement));
  // Built-in passes may let outputs share (cse does): the planner gives each a buffer of its own.
  if (!pass.built_in()) return clone_shared_outputs(before, std::move(after), context.ops, is_part, run.clones);
  return after;
}

// The pass on one graph, whose nested graphs it has been on. `where` is for messages: "in the graph of node 'a': ".
Result<GraphPtr> run_on(const Pass &pass, const GraphPtr &graph, const OpTable &ops, const Where &in, PassRun &run,
                        const PassHost *host, std::optional<PassContext::Clock::time_point> ends_by) {
  const std::string &where = in.text;
  const uint64_t nodes = graph->nodes().size();
  ++run.runs;
  run.nodes_before += nodes;
  run.nodes_after += nodes;
  Edit edit(graph);
  PassContext context{.edit = edit,
                      .ops = ops,
                      .options = pass.options,
                      .replacement = nullptr,
                      .is_part = in.is_part,
                      .pass = &pass,
                      .host = host,
                      .region = in.region,
                      .ends_by = ends_by,
                      .notes = {},
                      .warnings = {},
                      .matches = {}};
  if (pass.patterns) {
    if (run.patterns.empty()) run.patterns = run_of(pass).patterns;
    context.matches.resize(run.patterns.size());
    pass.patterns->set.ask_for_ops(ops);
  }
  Status status = pass.run(context);
  run.notes.insert(run.notes.end(), context.notes.begin(), context.notes.end());
  run.warnings.insert(run.warnings.end(), context.warnings.begin(), context.warnings.end());
  if (context.cancelled) return blame(pass, Code::cancelled, str_cat(where, "cancelled by the host while it ran"));
  if (!status.ok() && pass.built_in()) return status;  // what the graph asks for cannot be done
  const auto failed_by = [&](std::string_view what) { run.failed_by = what; };
  const auto refuse = [&](std::string_view what) { return blame(pass, Code::plugin_failed, str_cat(where, what)); };
  if (context.took_too_long) {
    failed_by("budget");
    return refuse(str_cat("took longer than its budget of ", host->policy.budget_ms, " ms"));
  }
  if (!status.ok()) {
    failed_by(status.code() == Code::exception ? "throw" : "error");
    return blame_failure(pass, where + "failed", status);
  }
  if (!context.done) {
    failed_by("not done");
    return refuse("returned without saying that it is done (kiln_pass_done)");
  }
  failed_by("invariant");
  if (edit.has_open_scope()) return refuse("left a scope open (kiln_edit_scope with no annotations closes it)");
  Result<GraphPtr> after = commit(pass, graph, context, run);
  if (!after.ok()) return blame(pass, Code::invariant, str_cat(where, after.status().message()), after.status().info());
  failed_by("");
  ask_for_ops(**after, ops);
  run.rewrites += context.rewrites;
  for (size_t i = 0; i < context.matches.size(); ++i) run.patterns[i].matches += context.matches[i];
  run.nodes_after += (*after)->nodes().size() - nodes;
  return after;
}

// Whether the compile goes on as if the pass had not run.
bool is_skipped(const Pass &pass, const Status &failure, const PassHost *host) {
  return host && host->policy.skips_failures && !pass.built_in() && failure.code() != Code::cancelled &&
         failure.code() != Code::out_of_memory;
}

}  // namespace

PassList PassList::built_in() {
  PassList list;
  uint64_t registration = 0;
  for (Pass (*make)() : built_in_passes) {
    auto pass = std::make_shared<Pass>(make());
    pass->registration = registration++;
    list.passes_.push_back(std::move(pass));
  }
  return list;
}

Status PassList::add(std::shared_ptr<const Pass> pass) {
  if (pass->name.empty()) return invalid("a pass of ", pass->plugin, " has no name");
  if (std::find(reserved_names.begin(), reserved_names.end(), pass->name) != reserved_names.end())
    return invalid(described(*pass), ": no pass may have this name, nor ",
                   join(reserved_names, ", ", [](std::string_view name) { return name; }),
                   ": where a pass is named these mean stages, or all passes; give it another, or a label");
  if (pass->uuid && *pass->uuid == Uuid{})
    return invalid(described(*pass), ": its UUID is all zero; give it one of its own, or none");
  if (pass->timing == Timing::late && !pass->uuid)
    return invalid(described(*pass), ": its timing is late, which needs an identity: a UUID");
  for (const auto &other : passes_) {
    const bool twice = !pass->built_in() && other->plugin == pass->plugin;
    if (other->name == pass->name)
      return invalid(described(*pass), ": the name is taken by ", described(*other), " already",
                     twice ? "; it is registered twice" : "");
    if (pass->uuid && other->uuid == pass->uuid && other->label == pass->label)
      return invalid(described(*pass), ": its UUID is that of ", described(*other), "; each pass has one of its own",
                     ", or a label");
  }
  passes_.push_back(std::move(pass));
  return {};
}

Status PassList::remove(uint64_t registration) {
  auto found = std::find_if(passes_.begin(), passes_.end(),
                            [&](const auto &pass) { return !pass->built_in() && pass->registration == registration; });
  if (found == passes_.end()) return error(Code::unknown_name, "no pass is registered under id ", registration);
  passes_.erase(found);
  return {};
}

Result<std::vector<std::shared_ptr<const Pass>>> PassList::select(const std::optional<std::vector<std::string>> &only,
                                                                  std::span<const std::string> without) const {
  auto has = [](std::span<const std::string> names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (std::span<const std::string> names : {only ? std::span(*only) : std::span<const std::string>(), without}) {
    for (const std::string &name : names) {
      if (std::any_of(passes_.begin(), passes_.end(), [&](const auto &pass) { return pass->name == name; })) continue;
      return error(Code::unknown_name, "no pass is named '", name,
                   "'; there are: ", join(passes_, ", ", [](const auto &pass) { return pass->name; }));
    }
  }
  std::vector<std::shared_ptr<const Pass>> selected;
  for (const auto &pass : passes_) {
    if ((!only || pass->built_in() || has(*only, pass->name)) && !has(without, pass->name)) selected.push_back(pass);
  }
  // passes_ is in order of registration, built-ins first, and the sort is stable.
  std::stable_sort(selected.begin(), selected.end(), [](const auto &a, const auto &b) {
    return std::pair(a->stage, a->priority) < std::pair(b->stage, b->priority);
  });
  return selected;
}

PassRun run_of(const Pass &pass) {
  PassRun run{.name = pass.name,
              .stage = std::string(name_of(pass.stage)),
              .built_in = pass.built_in(),
              .numerics = pass.numerics};
  if (pass.patterns)
    for (const patterns::Pattern &pattern : pass.patterns->set.patterns())
      run.patterns.push_back({.name = pattern.name, .matches = 0, .expected = pattern.expected});
  return run;
}

Result<GraphPtr> run_pass(const Pass &pass, const GraphPtr &graph, const OpTable &ops, PassRun &run, const Where &where,
                          const PassHost *host) {
  if (host && host->progress && host->progress(str_cat(name_of(pass.stage), ": ", described(pass))))
    return error(Code::cancelled, "the compile was cancelled before ", described(pass));
  const auto start = PassContext::Clock::now();
  std::optional<PassContext::Clock::time_point> ends_by;
  if (host && host->policy.budget_ms && !pass.built_in())
    ends_by = start + std::chrono::milliseconds(host->policy.budget_ms);
  const PassRun before = run;
  Result<GraphPtr> after = [&]() -> Result<GraphPtr> {
    const auto on_nested = [&](const GraphPtr &nested, const std::string &carrier) {
      Where in{str_cat(where.text, "in the graph of ", carrier, ": "), false, where.region};
      return run_on(pass, nested, ops, in, run, host, ends_by);
    };
    if (pass.top_only) return run_on(pass, graph, ops, where, run, host, ends_by);
    KILN_ASSIGN(const GraphPtr whole, rewrite_nested(graph, on_nested));
    return run_on(pass, whole, ops, where, run, host, ends_by);
  }();
  run.ms += std::chrono::duration<double, std::milli>(PassContext::Clock::now() - start).count();
  if (after.ok() || !is_skipped(pass, after.status(), host)) return after;
  run.rewrites = before.rewrites;
  run.clones = before.clones;
  run.nodes_after = before.nodes_after + (run.nodes_before - before.nodes_before);
  run.skipped = after.status().message();
  if (host->uncacheable && host->uncacheable->empty()) *host->uncacheable = str_cat(described(pass), " was skipped");
  if (host->warning && host->warning(str_cat("skipped: ", run.skipped)))
    return error(Code::cancelled, "the host cancelled the compile");
  return graph;
}

Result<GraphPtr> run_lower_passes(const LowerPasses &lower, GraphPtr region, const OpTable &ops, const Where &where) {
  if (lower.passes.empty()) return region;
  const auto inlined = [&](const GraphPtr &nested, const std::string &) { return inline_calls(nested, ops); };
  KILN_ASSIGN(region, inline_calls(std::move(region), ops));
  KILN_ASSIGN(region, rewrite_nested(region, inlined));
  for (size_t i = 0; i < lower.passes.size(); ++i) {
    PassRun &run = lower.runs[i];
    const GraphPtr before = region;
    KILN_ASSIGN(region, run_pass(*lower.passes[i], region, ops, run, where, lower.host));
    if (lower.observe) KILN_TRY(lower.observe(lower.passes[i]->name, where.region.value_or(""), before, region));
    ByteWriter digests;
    digests.raw(run.digest.bytes);
    digests.raw(digest_of(*region).bytes);
    run.digest = digest_of(digests.bytes());
  }
  return region;
}

}  // namespace kiln
