// kiln bench: measures graphs and artifacts, each variant in processes of its own.
#include <csignal>
#include <cstdio>
#include <optional>

#include <unistd.h>

#include "../commands.h"
#include "process.h"
#include "results.h"

namespace kiln::cli {
namespace bench {
namespace {

constexpr auto bench_flags = with_shared_flags(std::array{
    Flag{"--vary", "NAME=A,B,…", "measure with each value of threads, plugin, an option of the compile or a symbol",
         true},
    Flag{"--rounds", "N", "how often each is measured, in turn with the others (7)"},
    Flag{"--ms", "N", "of steady runs in each process, at least (200)"},
    Flag{"--limit", "SECONDS", "that a process may take (600)"},
    Flag{"--against", "F.json", "tell what changed since figures that --json wrote; exit code 3: something is slower"},
    Flag{"--noise", "PERCENT", "of --against: what medians that differ by no more is no change (3)"},
    Flag{"--json", "F|-", "write the figures, in Google Benchmark's format"},
});

class Progress {
 public:
  explicit Progress(int64_t rounds) : rounds_(rounds), shown_(isatty(STDERR_FILENO)) {}
  void show(int64_t round, const Variant &variant) const {
    if (shown_)
      std::fprintf(stderr, "\r\033[Kkiln: round %lld of %lld, %s", static_cast<long long>(round + 1),
                   static_cast<long long>(rounds_), printable(variant.name).c_str());
  }
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

 private:
  int64_t rounds_;
  bool shown_;
};

// Where all variants failed, and for one reason, that is told as of any command.
void throw_what_all_failed_with(const std::vector<Measured> &all) {
  for (const Measured &one : all)
    if (one.error.empty() || one.error != all.front().error) return;
  if (all.front().is_usage) throw Usage(all.front().error);
  throw Failure(all.front().error);
}

int measure_and_tell(const Args &args) {
  const auto path = args.get("--against");
  std::optional<Json> before;  // read first: a file that is none is told at once
  if (path) before = read_json(read_file(*path), *path);
  if (args.has("--noise") && !path) throw Usage("--noise is for --against");
  const double noise = static_cast<double>(args.integer("--noise", 0, 1000).value_or(3)) / 100;
  const auto limit = static_cast<int>(args.integer("--limit", 1, 1000000).value_or(600));
  const int64_t rounds = args.integer("--rounds", 1, 10000).value_or(7);
  const double seconds = static_cast<double>(args.integer("--ms", 1, 1000000).value_or(200)) / 1000;
  const std::vector<Variant> variants = variants_of(args, limit);
  std::vector<Measured> all;
  {
    const Progress progress(rounds);
    all = measure(variants, {rounds, seconds, limit},
                  [&](int64_t round, const Variant &variant) { progress.show(round, variant); });
  }
  throw_what_all_failed_with(all);
  std::optional<Comparison> comparison;
  if (before) comparison = compared_with(*before, *path, all, noise);
  const auto json = args.get("--json");
  if (json) write_file(*json, json_of(all, comparison ? &*comparison : nullptr));
  if (json != "-") {
    print(table_of(all));
    if (comparison) print(table_of(*comparison, *path));
  }
  for (const Measured &one : all)
    if (!one.error.empty() || one.is_beyond) return 1;
  return comparison && comparison->is_slower() ? 3 : 0;
}

int bench_main(const Args &args) {
  int signal = 0;
  {
    const Interrupts interrupts;
    try {
      return measure_and_tell(args);
    } catch (const Interrupted &interrupted) {
      signal = interrupted.signal;
    }
  }
  std::fputs("kiln: interrupted\n", stderr);
  raise(signal);  // as who started it expects: by default it ends the process
  return 1;
}

}  // namespace
}  // namespace bench

const Command bench_command{"bench",
                            "GRAPH|ARTIFACT…",
                            "Measures compiles and runs of graphs and artifacts, in processes of their own.",
                            1,
                            64,
                            bench::bench_flags,
                            bench::bench_main};

}  // namespace kiln::cli
