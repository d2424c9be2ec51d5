// Sums of 64 MiB of numbers, of more than one chunk each (jit/kernel/kernel.h, "The order of sums"): memory bounds
// them, and the rate at which it is read is the roof.
#include "figure.h"
#include "machine.h"

namespace kiln::bench {
namespace {

constexpr int64_t narrow = 1024;
int64_t wide() { return effort().size<int64_t>(16384, 5000); }

// x [n, m] summed over `dims`; y is of `shape`. `expected(x, k)`: element k in float64.
void measure(benchmark::State &state, int64_t n, int64_t m, const std::string &dims, std::vector<int64_t> shape,
             double (*expected)(std::span<const float> x, int64_t n, int64_t m, int64_t k)) {
  Program program("{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\", \"m\"]") +
                      "], \"nodes\": [{\"name\": \"s\", \"op\": \"sum\", \"inputs\": [\"x\"], \"attrs\": {\"dims\": [" +
                      dims + "]}}], \"outputs\": [{\"name\": \"y\", \"value\": \"s\"}]}",
                  0);
  const auto results = static_cast<int64_t>(elements_of(shape));
  program.bind("x", {n, m});
  program.bind("y", std::move(shape));
  program.run();
  for (const int64_t k : {int64_t{0}, results / 2, results - 1})
    expect_close(program.values("y")[static_cast<size_t>(k)], expected(program.values("x"), n, m, k), "a sum");
  for (auto _ : state) {
    const double bytes = static_cast<double>(n * m) * sizeof(float);
    report(state, part_of(read_roof(), 10, bytes, [&] { program.run(); }), "of reading", 0.9, Better::higher);
  }
}

double sum_of(std::span<const float> x, int64_t first, int64_t step, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double{x[static_cast<size_t>(first + i * step)]};
  return sum;
}

void sum_rows_of_reading(benchmark::State &state) {
  measure(state, narrow, wide(), "1", {narrow},
          [](std::span<const float> x, int64_t, int64_t m, int64_t k) { return sum_of(x, k * m, 1, m); });
}
void sum_columns_of_reading(benchmark::State &state) {
  measure(state, wide(), narrow, "0", {narrow},
          [](std::span<const float> x, int64_t n, int64_t m, int64_t k) { return sum_of(x, k, m, n); });
}
void sum_all_of_reading(benchmark::State &state) {
  measure(state, wide(), narrow, "0, 1", {},
          [](std::span<const float> x, int64_t n, int64_t m, int64_t) { return sum_of(x, 0, 1, n * m); });
}

KILN_FIGURE(sum_rows_of_reading)
KILN_FIGURE(sum_columns_of_reading)
KILN_FIGURE(sum_all_of_reading)

}  // namespace
}  // namespace kiln::bench
