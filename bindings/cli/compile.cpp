// kiln compile: writes an artifact, which runs without any compiler. The cache is not asked: every pass runs.
#include <sys/stat.h>

#include <cstdio>

#include "commands.h"
#include "session.h"
#include "stats.h"

namespace kiln::cli {
namespace {

constexpr Flag flags[] = {
    {"--output", "ARTIFACT", "the file to write", false, "-o"},
    plugin_flag,
    plugin_option_flag,
    backend_flag,
    cpu_flag,
    arch_flag,
    rounding_flag,
    mode_flag,
    fallback_flag,
    passes_flag,
    disable_passes_flag,
    specialize_flag,
    option_flag,
    threads_flag,
    stats_flag,
};

int run(const Args &args) {
  const auto output = args.get("--output");
  if (!output) throw Usage("give the artifact to write: -o ARTIFACT");
  Stopwatch watch;
  Stats stats;
  const Session session(args);
  const Subject subject = load(session, args.operands()[0]);
  if (!subject.graph) throw Usage(args.operands()[0] + " is an artifact, compiled already");
  stats.phases.emplace_back("read_ms", watch.lap());
  Options options = compile_options(args);
  options.set("cache", false);
  Compiled compiled = compile(session, subject.graph, options);
  stats.compile = std::move(compiled.report);
  watch.lap();
  check(kiln_executable_save(compiled.executable.get(), output->data(), output->size(), nullptr));
  stats.phases.emplace_back("write_ms", watch.lap());
  stats.total_ms = watch.total();

  struct stat file = {};
  stat(output->c_str(), &file);
  char line[256];
  std::snprintf(line, sizeof line, ": %lld bytes, %lld kernels, %.1f ms\n", static_cast<long long>(file.st_size),
                static_cast<long long>(stats.compile.i64("kernels_compiled")), stats.total_ms);
  const auto where = args.get(stats_flag.name);
  if (where != "-") print(printable(*output) + line);
  if (where) write_file(*where, json_of(stats));
  return 0;
}

}  // namespace

const Command compile_command{
    "compile",
    "GRAPH -o ARTIFACT",
    "Compiles a graph into an artifact, which runs without a compiler. The cache is not used.",
    1,
    1,
    flags,
    run};

}  // namespace kiln::cli
