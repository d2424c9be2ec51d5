// Operations that memory bounds: the time of a copy of as many bytes is the roof.
#include "figure.h"
#include "machine.h"

namespace kiln::bench {
namespace {

constexpr int64_t rows = 4096, columns = 4096;  // 64 MiB an array
constexpr double bytes_moved = 2.0 * rows * columns * sizeof(float);

// One input x [n, 4096], one output y.
std::string graph_of(const std::string &nodes, const std::string &last) {
  return "{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\", 4096]") + "], \"nodes\": [" + nodes +
         "], \"outputs\": [{\"name\": \"y\", \"value\": \"" + last + "\"}]}";
}

void measure(benchmark::State &state, const std::string &graph, double target) {
  Program program(graph, 0);
  program.bind("x", {rows, columns});
  program.bind("y", {rows, columns});
  for (auto _ : state) {
    const double seconds = fastest(10, [&] { program.run(); });
    report(state, bytes_moved / seconds / copy_bandwidth(), "of copy", target, Better::higher);
  }
}

void pointwise10_of_copy(benchmark::State &state) {
  const char *ops[] = {"neg", "abs", "sqrt", "neg", "relu", "neg", "abs", "reciprocal", "neg", "sigmoid"};
  std::string nodes, value = "x";
  for (const char *op : ops) {
    const std::string name = "v" + std::to_string(nodes.size());
    nodes += (nodes.empty() ? "" : ", ") + ("{\"name\": \"" + name) + "\", \"op\": \"" + op + "\", \"inputs\": [\"" +
             value + "\"]}";
    value = name;
  }
  measure(state, graph_of(nodes, value), 0.8);
}

void softmax_rows_of_copy(benchmark::State &state) {
  measure(state, graph_of("{\"name\": \"s\", \"op\": \"softmax\", \"inputs\": [\"x\"]}", "s"), 0.5);
}

void rms_norm_rows_of_copy(benchmark::State &state) {
  measure(state, graph_of("{\"name\": \"r\", \"op\": \"rms_norm\", \"inputs\": [\"x\"]}", "r"), 0.5);
}

BENCHMARK(pointwise10_of_copy)->Iterations(1);
BENCHMARK(softmax_rows_of_copy)->Iterations(1);
BENCHMARK(rms_norm_rows_of_copy)->Iterations(1);

}  // namespace
}  // namespace kiln::bench
