// kiln compile: writes an artifact, which runs without any compiler, and may have the parameters, too. The cache is not
// asked: every pass runs.
#include <sys/stat.h>

#include <cstdio>

#include "commands.h"
#include "run_arrays.h"
#include "session.h"
#include "stats.h"

namespace kiln::cli {
namespace {

constexpr Flag compile_flags[] = {
    {"--output", "ARTIFACT", "the file to write", false, "-o"},
    {"--unpacked", "", "write a folder that can be read and edited"},
    {weights_flag.name, weights_flag.value, "put the graph's parameters into the file, by name, as kernels take them"},
    plugin_flag,
    plugin_option_flag,
    fact_flag,
    backend_flag,
    {"--cpu", "NAME[,NAME…]",
     "generate code for x86-64, v3, v4 or these and more (native); what opens it picks of several"},
    {"--arch", "NAME[,NAME…]", "of --backend cuda: generate code for sm_80, sm_90, … (native); likewise"},
    rounding_flag,
    mode_flag,
    fallback_flag,
    passes_flag,
    disable_passes_flag,
    specialize_flag,
    dump_flag,
    {"--report", "OUT.html", "write a page that shows the whole compile; of several targets the last"},
    option_flag,
    threads_flag,
    stats_flag,
};

Executable join(const std::vector<Executable> &executables) {
  std::vector<const kiln_executable *> all;
  for (const Executable &executable : executables) all.push_back(executable.get());
  return make<Executable>(kiln_executable_join, all.data(), all.size());
}

// Of --weights; empty: it is not given. All that is wrong with them is told before anything is compiled.
struct Weights {
  Signature signature;
  std::optional<RunArrays> arrays;

  Weights(const Args &args, const Session &session, const Graph &graph, size_t targets) {
    if (!args.has(weights_flag.name)) return;
    if (args.has("--unpacked")) throw Usage("--weights is for one file, and --unpacked writes a folder");
    if (targets > 1)
      throw Usage("--weights is for one target, whose kernels prepare them; --cpu or --arch names several");
    signature = signature_of(report_of(kiln_graph_describe, graph.get()));
    arrays.emplace(args, session, signature);
  }
};

void save(const Args &args, const Executable &executable, const Weights &weights, const std::string &output) {
  if (weights.arrays) {
    const Call call = make<Call>(kiln_call_create, executable.get());
    weights.arrays->bind(call.get());
    return check(kiln_call_save(call.get(), output.data(), output.size(), nullptr));
  }
  Options layout;
  layout.set("packed", !args.has("--unpacked"));
  check(kiln_executable_save(executable.get(), output.data(), output.size(), layout.get()));
}

int compile_main(const Args &args) {
  const auto output = args.get("--output");
  if (!output) throw Usage("give the artifact to write: -o ARTIFACT");
  Stopwatch watch;
  Stats stats;
  const Session session(args, false);
  const Subject subject = load(session, args.operands()[0]);
  if (!subject.graph) throw Usage(args.operands()[0] + " is an artifact, compiled already");
  stats.phases.emplace_back("read_ms", watch.lap());
  std::vector<Options> targets = options_of_targets(args, session);
  const Weights weights(args, session, subject.graph, targets.size());
  std::vector<Executable> made;
  long long kernels = 0;
  if (const auto page = args.get("--report")) targets.back().set("report_html", std::string_view(*page));
  for (Options &options : targets) {
    options.set("cache", false);
    Compiled compiled = compile(session, subject.graph, options);
    stats.compile = std::move(compiled.report);  // of several targets the last one's
    kernels += stats.compile.i64("kernels_compiled");
    made.push_back(std::move(compiled.executable));
  }
  const Executable joined = made.size() > 1 ? join(made) : std::move(made[0]);
  watch.lap();
  save(args, joined, weights, *output);
  stats.phases.emplace_back("write_ms", watch.lap());
  stats.total_ms = watch.total();

  struct stat file = {};
  stat(output->c_str(), &file);
  const std::string size = args.has("--unpacked") ? "a folder" : std::to_string(file.st_size) + " bytes";
  char line[256];
  std::snprintf(line, sizeof line, ": %s, %lld kernels, %.1f ms\n", size.c_str(), kernels, stats.total_ms);
  const auto where = args.get(stats_flag.name);
  if (where != "-") print(printable(*output) + line);
  if (where) write_file(*where, json_of(stats));
  return 0;
}

}  // namespace

const Command compile_command{
    "compile",
    "GRAPH -o ARTIFACT",
    "Compiles a graph into an artifact, which runs without a compiler. The cache is not used. With --weights it is one "
    "file of both, which kiln run needs no --weights for.",
    1,
    1,
    compile_flags,
    compile_main};

}  // namespace kiln::cli
