// What Kiln adds to the start of a process: processes of their own, timed from spawn to exit.
#include <algorithm>

#include "figure.h"
#include "process.h"
#include "tests/temporary_folder.h"

namespace kiln::bench {

double bare_process_seconds() {
  return fastest(30, [] { run_process({KILN_BENCH_BARE, KILN_MODELS_DIR "/chars/weights.safetensors"}); });
}

namespace {

// Process start to first logits of `chars` (batch 1, length 128) from a warm cache, less a warm call, above the bare
// process.
void warm_start_over_bare_ms(benchmark::State &state) {
  const std::string folder = KILN_MODELS_DIR "/chars";
  const test::TemporaryFolder cache;
  const std::vector<std::string> program = {KILN_BENCH_FIRST_LOGITS, folder, cache.path(), "128"};
  std::vector<std::string> with_calls = program;
  with_calls.emplace_back("50");
  const double call = run_process(with_calls);  // also fills the cache
  for (auto _ : state) {
    double start = 1e30, bare = 1e30;
    for (int i = 0; i < effort().rounds(10); ++i) {  // in turn
      start = std::min(start, fastest(3, [&] { run_process(program); }));
      bare = std::min(bare, fastest(3, [&] { run_process({KILN_BENCH_BARE, folder + "/weights.safetensors"}); }));
    }
    report(state, (start - call - bare) * 1e3, "ms", 5, Better::lower);
  }
}

KILN_FIGURE(warm_start_over_bare_ms)

}  // namespace
}  // namespace kiln::bench
