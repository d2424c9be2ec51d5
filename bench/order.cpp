// What orders and scans: sorts against the standard library's, on one thread; running sums against a copy.
#include <algorithm>
#include <random>

#include "figure.h"
#include "machine.h"

namespace kiln::bench {
namespace {

std::string graph_of(const std::string &op, const std::string &attrs, const std::string &x) {
  return "{\"kiln\": 1, \"inputs\": [" + f32_json("x", x) + "], \"nodes\": [{\"name\": \"y\", \"op\": \"" + op +
         "\", \"inputs\": [\"x\"], \"attrs\": {" + attrs + "}}], \"outputs\": [{\"name\": \"y\", \"value\": \"y:0\"}]}";
}

void expect_same(std::span<const float> got, std::span<const float> expected) {
  for (size_t i = 0; i < expected.size(); ++i) expect_close(got[i], expected[i], "an element");
}

// How many times the rate of `peer`, which sorts a copy of x in place, a row of normal deviates is sorted at.
template <class Peer>
void measure(benchmark::State &state, const std::string &graph, int64_t wanted, double target, const Peer &peer) {
  const auto count = effort().size<int64_t>(1 << 20, 1 << 12);
  Program program(graph, 1);
  program.bind("x", {count});
  program.bind("y", {wanted < 0 ? count : wanted});
  std::mt19937 random(1);
  std::ranges::generate(program.values("x"),
                        [&, normal = std::normal_distribution<float>()]() mutable { return normal(random); });
  std::vector<float> row;
  const Roof roof{static_cast<double>(count), [&] {
                    const std::span<const float> x = program.values("x");
                    row.assign(x.begin(), x.end());
                    peer(row);
                  }};
  program.run();
  roof.run();
  expect_same(program.values("y"), std::span(row).first(program.values("y").size()));
  for (auto _ : state) {
    const double part = part_of(roof, 7, static_cast<double>(count), [&] { program.run(); });
    report(state, part, "of the library's", target, Better::higher);
  }
}

void sort_million_of_stable_sort(benchmark::State &state) {
  measure(state, graph_of("sort", "\"dim\": 0", "[\"n\"]"), -1, 3,
          [](std::vector<float> &row) { std::ranges::stable_sort(row); });
}
void topk_of_partial_sort(benchmark::State &state) {
  constexpr int64_t k = 100;
  measure(state, graph_of("topk", "\"dim\": 0, \"k\": 100", "[\"n\"]"), k, 0.5,
          [](std::vector<float> &row) { std::ranges::partial_sort(row, row.begin() + k, std::greater()); });
}

void cumsum_rows_of_copy(benchmark::State &state) {
  constexpr int64_t columns = 4096;
  const auto rows = effort().size<int64_t>(4096, 64);
  Program program(graph_of("cumsum", "\"dim\": 1", "[\"n\", 4096]"), 0);
  program.bind("x", {rows, columns});
  program.bind("y", {rows, columns});
  program.run();
  double sum = 0;
  for (size_t i = 0; i < columns; ++i) expect_close(program.values("y")[i], sum += program.values("x")[i], "a sum");
  for (auto _ : state) {
    const double bytes = 2.0 * sizeof(float) * static_cast<double>(rows) * columns;
    report(state, part_of(copy_roof(), 10, bytes, [&] { program.run(); }), "of copy", 0.5, Better::higher);
  }
}

KILN_FIGURE(sort_million_of_stable_sort)
KILN_FIGURE(topk_of_partial_sort)
KILN_FIGURE(cumsum_rows_of_copy)

}  // namespace
}  // namespace kiln::bench
