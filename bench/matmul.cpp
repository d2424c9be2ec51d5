// A product with a parameter, packed once: the multiply-adds of the machine are the roof.
#include "figure.h"
#include "machine.h"

namespace kiln::bench {
namespace {

void measure(benchmark::State &state, int threads) {
  constexpr int64_t size = 1024;
  Program program("{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\", 1024]") + "], \"parameters\": [" +
                      f32_json("w", "[1024, 1024]") +
                      "], \"nodes\": [{\"name\": \"p\", \"op\": \"linear\", \"inputs\": [\"x\", \"w\"]}], "
                      "\"outputs\": [{\"name\": \"y\", \"value\": \"p\"}]}",
                  threads);
  for (const char *name : {"x", "w", "y"}) program.bind(name, {size, size});
  for (auto _ : state) {
    const double seconds = fastest(20, [&] { program.run(); });
    report(state, 2.0 * size * size * size / seconds / fma_peak(threads), "of peak", 0.7, Better::higher);
  }
}

void matmul1024_of_peak_1t(benchmark::State &state) { measure(state, 1); }
void matmul1024_of_peak_2t(benchmark::State &state) { measure(state, 2); }

BENCHMARK(matmul1024_of_peak_1t)->Iterations(1);
BENCHMARK(matmul1024_of_peak_2t)->Iterations(1);

}  // namespace
}  // namespace kiln::bench
