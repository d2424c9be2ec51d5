// A product with a parameter, packed once: the multiply-adds of the machine are the roof.
#include "figure.h"
#include "machine.h"

namespace kiln::bench {
namespace {

void measure(benchmark::State &state, int threads) {
  constexpr size_t size = 1024;
  const size_t rows = effort().size<size_t>(size, 96);
  Program program("{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\", 1024]") + "], \"parameters\": [" +
                      f32_json("w", "[1024, 1024]") +
                      "], \"nodes\": [{\"name\": \"p\", \"op\": \"linear\", \"inputs\": [\"x\", \"w\"]}], "
                      "\"outputs\": [{\"name\": \"y\", \"value\": \"p\"}]}",
                  threads);
  program.bind("w", {size, size});
  for (const char *name : {"x", "y"}) program.bind(name, {static_cast<int64_t>(rows), size});
  program.run();
  for (size_t sample = 0; sample < 64; ++sample) {
    const size_t row = (sample * 16 + sample % 7) % rows, column = sample * 15;
    double sum = 0;
    for (size_t k = 0; k < size; ++k)
      sum += double{program.values("x")[row * size + k]} * double{program.values("w")[column * size + k]};
    expect_close(program.values("y")[row * size + column], sum, "a product's element");
  }
  for (auto _ : state) {
    const double part =
        part_of(fma_roof(threads), 20, 2.0 * static_cast<double>(rows) * size * size, [&] { program.run(); });
    report(state, part, "of peak", 0.7, Better::higher);
  }
}

void matmul1024_of_peak_1t(benchmark::State &state) { measure(state, 1); }
void matmul1024_of_peak_2t(benchmark::State &state) { measure(state, 2); }

KILN_FIGURE(matmul1024_of_peak_1t)
KILN_FIGURE(matmul1024_of_peak_2t)

}  // namespace
}  // namespace kiln::bench
