// How long a cold compile takes.
#include <algorithm>
#include <stdexcept>

#include "figure.h"
#include "process.h"
#include "session.h"

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
    for (int i = 0; i < 10; ++i) {
      const Program program(chars(), 0);
      const cli::Report &compiled = program.compile_report();
      if (compiled.i64("kernels_compiled") == 0) throw std::runtime_error("a cold compile compiled no kernel");
      best = std::min(best, compiled.f64("total_ms") / static_cast<double>(compiled.i64("kernels_compiled")));
    }
    report(state, best, "ms", 2.5, Better::lower);
  }
}

// What the first compile of a process takes above the next: opening libkiln_llvm and warming it up.
void llvm_load_ms(benchmark::State &state) {
  for (auto _ : state) {
    double best = 1e30;
    for (int i = 0; i < 5; ++i) best = std::min(best, run_process({KILN_BENCH_LLVM_LOAD}));
    report(state, best, "ms", 50, Better::lower);
  }
}

KILN_FIGURE(compile_ms_per_kernel)
KILN_FIGURE(llvm_load_ms)

}  // namespace
}  // namespace kiln::bench
