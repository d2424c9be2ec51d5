// kiln run: compiles (or loads), binds, runs once, and shows or writes the outputs.
#include <cstdio>
#include <map>
#include <set>

#include "commands.h"
#include "compare.h"
#include "profile.h"
#include "run_arrays.h"
#include "session.h"
#include "stats.h"

namespace kiln::cli {
namespace {

constexpr Flag run_flags[] = {
    weights_flag,
    input_flag,
    {"--random", "SEED", "generate the inputs and weights that are not given"},
    size_flag,
    {"--output", "NAME=F", "write an output, as F.npy or F.safetensors", true},
    {"--times", "", "print how long each step of the plan took, in a second run"},
    {"--profile", "F.json", "print the same as a table, with rates, and write a trace of it for ui.perfetto.dev"},
    {"--compare", "reference", "run the reference backend, too, and print how far apart the outputs are"},
    plugin_flag,
    plugin_option_flag,
    fact_flag,
    backend_flag,
    cpu_flag,
    arch_flag,
    rounding_flag,
    mode_flag,
    fallback_flag,
    passes_flag,
    disable_passes_flag,
    specialize_flag,
    specialize_when_flag,
    dump_flag,
    option_flag,
    threads_flag,
    cache_flag,
    strict_flag,
    stats_flag,
};

// With the statistics on standard output that is all that is there, so that it can be read by a program.
bool prints_lines(const Args &args) { return args.get(stats_flag.name) != "-"; }
// What was asked for beside them goes to standard error, then.
void say(const Args &args, const std::string &line) {
  if (prints_lines(args)) return print(printable(line) + "\n");
  std::fprintf(stderr, "%s\n", printable(line).c_str());
}

// Prints how far each output is from what the reference makes of arrays of its own. Returns whether one is too far.
bool is_beyond_reference(const std::vector<Array> &outputs, const Args &args, const Session &session,
                         const Signature &signature, const Graph &graph) {
  Options options;
  options.set("backend", std::string_view("reference"));
  const Compiled compiled = compile(session, graph, options);
  const RunArrays arrays(args, session, signature, graph);  // again: the first run may have written to its inputs
  const Call call = make<Call>(kiln_call_create, compiled.executable.get());
  arrays.bind(call.get());
  check(kiln_call_run(call.get(), nullptr, 0, nullptr));
  const std::vector<Array> expected = outputs_of(call.get(), signature);
  bool is_beyond = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Difference found = difference_of(*outputs[i].tensor(), *expected[i].tensor());
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "%.3g, relative %.3g", found.absolute, found.relative);
    std::string line = signature.outputs[i].name + "  differs from reference by " + numbers;
    if (!found.where.empty()) line += " at " + found.where;
    if (found.is_beyond) line += ", beyond the tolerance";
    say(args, line);
    is_beyond = is_beyond || found.is_beyond;
  }
  return is_beyond;
}

void show_outputs(const std::vector<Array> &outputs, const Args &args, const Signature &signature) {
  std::map<std::string, std::string> files;
  for (const auto &[name, path] : args.pairs("--output")) files[name] = path;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Slot &slot = signature.outputs[i];
    const DLTensor *tensor = outputs[i].tensor();
    std::string line = slot.name + "  " + slot.dtype + " " + summary_of(*tensor);
    if (const auto file = files.find(slot.name); file != files.end()) {
      const kiln_text name = {slot.name.data(), slot.name.size()};
      check(kiln_tensors_write(file->second.data(), file->second.size(), &name, &tensor, 1));
      line += "  -> " + file->second;
    }
    if (prints_lines(args)) print(printable(line) + "\n");
  }
}

void show_times(const Args &args, const Report &report) {
  const uint64_t count = report.count("steps");
  for (uint64_t i = 0; i < count; ++i) {
    const std::string at = "steps." + std::to_string(i) + ".";
    char time[80];
    std::snprintf(time, sizeof time, "%10.1f us %6lld x  ", static_cast<double>(report.i64(at + "ns")) / 1000,
                  static_cast<long long>(report.i64(at + "runs")));
    const std::string plan = report.text(at + "plan");
    std::string nodes = report.has(at + "nodes") ? nodes_text(report, at + "nodes") : "";
    if (!nodes.empty()) nodes.insert(0, " of ");
    say(args, time + (plan.empty() ? "" : "plan " + plan + " ") + "step " + std::to_string(report.i64(at + "step")) +
                  ": " + report.text(at + "what") + nodes);
  }
}

void show_profile(const Args &args, const Session &session, const Subject &subject, kiln_call *call,
                  const Report &compiled) {
  StepSpans spans;
  session.listen([&](std::string_view event) { spans.ended(event); });
  const Report report = timed_run(call);
  session.listen({});
  if (args.has("--times")) show_times(args, report);
  write_file(*args.get("--profile"), trace_json(report, spans, compiled));
  const Report described = report_of(kiln_executable_describe, subject.executable.get());
  std::string table = profile_table(step_times(report), measure_roof(session, described.text("backend")));
  for (size_t end = table.find('\n'); end != table.npos; end = table.find('\n')) {
    say(args, table.substr(0, end));
    table.erase(0, end + 1);
  }
}

// What was mapped of files is verified behind the run; closing waits for it. A save that failed costs the next process
// a compile, and this one nothing.
void check_damage(const Session &session) {
  try {
    check(kiln_context_close(session.context()));
  } catch (const Failure &failure) {
    if (failure.code == KILN_CORRUPT) throw;
  }
}

int run_main(const Args &args) {
  Stopwatch watch;
  Stats stats;
  const Session session(args);
  Subject subject = load(session, args.operands()[0]);
  if (!subject.graph) refuse_compile_flags(args);
  if (const auto with = args.get("--compare")) {
    if (*with != "reference") throw Usage("--compare: '" + *with + "' is not reference");
    if (!subject.graph) throw Usage("--compare applies to a graph; this is an artifact, compiled already");
  }
  const Signature signature =
      signature_of(subject.graph ? report_of(kiln_graph_describe, subject.graph.get())
                                 : report_of(kiln_executable_describe, subject.executable.get()));
  std::set<std::string> files;
  for (const auto &[name, path] : args.pairs("--output")) {
    slot_named(signature.outputs, name, "--output");
    if (!files.insert(path).second) throw Usage("--output: '" + path + "' is given twice");
  }
  const RunArrays arrays(args, session, signature, subject.graph);
  stats.phases.emplace_back("read_ms", watch.lap());
  if (subject.graph) {
    Compiled compiled = compile(session, subject.graph, compile_options(args, session));
    subject.executable = std::move(compiled.executable);
    stats.compile = std::move(compiled.report);
  }
  watch.lap();  // the compile's own phases tell more

  const Call call = make<Call>(kiln_call_create, subject.executable.get());
  arrays.bind(call.get());
  stats.phases.emplace_back("bind_ms", watch.lap());
  check(kiln_call_run(call.get(), nullptr, 0, nullptr));
  stats.phases.emplace_back("run_ms", watch.lap());
  const Report call_report = report_of(kiln_call_report, call.get());
  stats.call_bytes = static_cast<uint64_t>(call_report.i64("memory_bytes"));
  stats.entry = call_report.text("entry");
  const std::vector<Array> outputs = outputs_of(call.get(), signature);
  show_outputs(outputs, args, signature);
  stats.total_ms = watch.total();
  if (const auto file = args.get(stats_flag.name)) write_file(*file, json_of(stats));
  if (args.has("--profile")) {
    show_profile(args, session, subject, call.get(), stats.compile);
  } else if (args.has("--times")) {
    show_times(args, timed_run(call.get()));
  }
  const bool is_beyond = args.has("--compare") && is_beyond_reference(outputs, args, session, signature, subject.graph);
  check_damage(session);
  return is_beyond ? 1 : 0;
}

}  // namespace

const Command run_command{
    "run", "GRAPH|ARTIFACT", "Runs a graph, or an artifact that was compiled before, once.", 1, 1, run_flags, run_main};

}  // namespace kiln::cli
