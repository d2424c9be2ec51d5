// Operations that memory bounds: the time of a copy of as many bytes is the roof.
#include <cmath>

#include "figure.h"
#include "machine.h"

namespace kiln::bench {
namespace {

constexpr int64_t columns = 4096;
int64_t rows() { return effort().size<int64_t>(4096, 64); }  // 64 MiB an array
double bytes_moved() { return 2.0 * static_cast<double>(rows()) * columns * sizeof(float); }

// One input x [n, 4096], one output y.
std::string graph_of(const std::string &nodes, const std::string &last) {
  return "{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\", 4096]") + "], \"nodes\": [" + nodes +
         "], \"outputs\": [{\"name\": \"y\", \"value\": \"" + last + "\"}]}";
}

// `expected(row, column)`: what float64 makes of a row of x.
template <class Expected>
void measure(benchmark::State &state, const std::string &graph, double target, const Expected &expected) {
  Program program(graph, 0);
  program.bind("x", {rows(), columns});
  program.bind("y", {rows(), columns});
  program.run();
  for (size_t i = 0; i < 64; ++i) {
    const size_t row = (i * 64 + i) % static_cast<size_t>(rows()), column = i * 64 + 7 * i % 64;
    const std::span<const float> x = program.values("x").subspan(row * columns, columns);
    expect_close(program.values("y")[row * columns + column], expected(x, column), "an element");
  }
  for (auto _ : state) {
    const double part = part_of(copy_roof(), 10, bytes_moved(), [&] { program.run(); });
    report(state, part, "of copy", target, Better::higher);
  }
}

// Ten operations of which none is another's inverse: nine that cost little, and one that does not. Memory is the bound,
// as in most models' pointwise chains.
void pointwise10_of_copy(benchmark::State &state) {
  const char *nodes = R"(
    {"name": "c1", "op": "full", "inputs": [], "attrs": {"shape": [], "dtype": "f32", "value": 0.75}},
    {"name": "c2", "op": "full", "inputs": [], "attrs": {"shape": [], "dtype": "f32", "value": 0.5}},
    {"name": "c3", "op": "full", "inputs": [], "attrs": {"shape": [], "dtype": "f32", "value": 0.125}},
    {"name": "c4", "op": "full", "inputs": [], "attrs": {"shape": [], "dtype": "f32", "value": 1}},
    {"name": "c5", "op": "full", "inputs": [], "attrs": {"shape": [], "dtype": "f32", "value": 0.25}},
    {"name": "c6", "op": "full", "inputs": [], "attrs": {"shape": [], "dtype": "f32", "value": 1.5}},
    {"name": "v1", "op": "mul", "inputs": ["x", "c1"]},
    {"name": "v2", "op": "sub", "inputs": ["v1", "c2"]},
    {"name": "v3", "op": "abs", "inputs": ["v2"]},
    {"name": "v4", "op": "maximum", "inputs": ["v3", "c3"]},
    {"name": "v5", "op": "mul", "inputs": ["v4", "x"]},
    {"name": "v6", "op": "minimum", "inputs": ["v5", "c4"]},
    {"name": "v7", "op": "add", "inputs": ["v6", "c5"]},
    {"name": "v8", "op": "sigmoid", "inputs": ["v7"]},
    {"name": "v9", "op": "mul", "inputs": ["v8", "c6"]},
    {"name": "v10", "op": "sub", "inputs": ["v9", "x"]})";
  measure(state, graph_of(nodes, "v10"), 0.8, [](std::span<const float> row, size_t column) {
    const double x = row[column];
    const double z = std::min(std::max(std::abs(0.75 * x - 0.5), 0.125) * x, 1.0) + 0.25;
    return 1.5 / (1 + std::exp(-z)) - x;
  });
}

void softmax_rows_of_copy(benchmark::State &state) {
  measure(state, graph_of("{\"name\": \"s\", \"op\": \"softmax\", \"inputs\": [\"x\"]}", "s"), 0.5,
          [](std::span<const float> x, size_t column) {
            double sum = 0;
            for (float each : x) sum += std::exp(double{each});
            return std::exp(double{x[column]}) / sum;
          });
}

void rms_norm_rows_of_copy(benchmark::State &state) {
  measure(state, graph_of("{\"name\": \"r\", \"op\": \"rms_norm\", \"inputs\": [\"x\"]}", "r"), 0.5,
          [](std::span<const float> x, size_t column) {
            double sum = 0;
            for (float each : x) sum += double{each} * double{each};
            return x[column] / std::sqrt(sum / columns + 1e-6);
          });
}

KILN_FIGURE(pointwise10_of_copy)
KILN_FIGURE(softmax_rows_of_copy)
KILN_FIGURE(rms_norm_rows_of_copy)

}  // namespace
}  // namespace kiln::bench
