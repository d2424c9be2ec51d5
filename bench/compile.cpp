// How long a compile takes, cold and out of the cache.
#include <algorithm>
#include <stdexcept>

#include "figure.h"
#include "process.h"
#include "session.h"
#include "tests/temporary_folder.h"

namespace kiln::bench {
namespace {

const std::string &chars() {
  static const std::string graph = cli::read_file(KILN_MODELS_DIR "/chars/graph.json");
  return graph;
}

// Wall time of a compile of `chars` on all cores per distinct kernel. A first compile has loaded LLVM.
void compile_ms_per_kernel(benchmark::State &state) {
  const Program first(chars(), 0);
  for (auto _ : state) {
    double best = 1e30;
    for (int i = 0; i < effort().rounds(10); ++i) {
      const Program program(chars(), 0);
      const cli::Report &compiled = program.compile_report();
      if (compiled.i64("kernels_compiled") == 0) throw std::runtime_error("a cold compile compiled no kernel");
      best = std::min(best, compiled.f64("total_ms") / static_cast<double>(compiled.i64("kernels_compiled")));
    }
    report(state, best, "ms", 2.5, Better::lower);
  }
}

// The compile report of `chars` in a context of its own, whose cache is in `folder`.
cli::Report compile_chars(const std::string &folder) {
  cli::Options settings;
  settings.set("cache", folder);
  const auto context = cli::make<cli::Context>(kiln_context_create, settings.get(), nullptr);
  const auto graph = cli::make<cli::Graph>(kiln_graph_parse, context.get(), chars().data(), chars().size());
  kiln_executable *executable = nullptr;
  kiln_report *report = nullptr;
  cli::check(kiln_compile(context.get(), graph.get(), nullptr, &executable, &report));
  const cli::Executable owned(executable);
  return cli::Report(report);
}

// Wall time of a compile of `chars` that ends in a hit: verify, key, look up, load.
void hit_ms(benchmark::State &state) {
  const test::TemporaryFolder folder;
  compile_chars(folder.path());  // saved when its context went
  for (auto _ : state) {
    double best = 1e30;
    for (int i = 0; i < effort().rounds(100); ++i) {
      const cli::Report compiled = compile_chars(folder.path());
      if (compiled.text("lookup") != "HIT") throw std::runtime_error("the record was not found");
      best = std::min(best, compiled.f64("total_ms"));
    }
    report(state, best, "ms", 1, Better::lower);
  }
}

// What the first compile of a process takes above the next: opening libkiln_llvm and warming it up.
void llvm_load_ms(benchmark::State &state) {
  for (auto _ : state) {
    double best = 1e30;
    for (int i = 0; i < effort().rounds(5); ++i) best = std::min(best, run_process({KILN_BENCH_LLVM_LOAD}));
    report(state, best, "ms", 50, Better::lower);
  }
}

KILN_FIGURE(compile_ms_per_kernel)
KILN_FIGURE(hit_ms)
KILN_FIGURE(llvm_load_ms)

}  // namespace
}  // namespace kiln::bench
