// How long a cold compile takes.
#include "figure.h"
#include "session.h"

namespace kiln::bench {
namespace {

// Wall time of a compile of `chars` on all cores per kernel that is emitted. A first compile has loaded LLVM.
void compile_ms_per_kernel(benchmark::State &state) {
  const std::string chars = cli::read_file(KILN_MODELS_DIR "/chars/graph.json");
  const Program first(chars, 0);
  for (auto _ : state) {
    double best = 1e30;
    for (int i = 0; i < 5; ++i) {
      const Program program(chars, 0);
      const cli::Report &compiled = program.compile_report();
      best = std::min(best, compiled.f64("total_ms") / static_cast<double>(compiled.i64("kernels_compiled")));
    }
    report(state, best, "ms", 2.5, Better::lower);
  }
}

BENCHMARK(compile_ms_per_kernel)->Iterations(1);

}  // namespace
}  // namespace kiln::bench
