// Operations that memory bounds: the time of a copy of as many bytes is the roof.
#include <cmath>

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

// `expected(row, column)`: what float64 makes of a row of x.
template <class Expected>
void measure(benchmark::State &state, const std::string &graph, double target, const Expected &expected) {
  Program program(graph, 0);
  program.bind("x", {rows, columns});
  program.bind("y", {rows, columns});
  program.run();
  for (size_t i = 0; i < 64; ++i) {
    const size_t row = i * 64 + i, column = i * 64 + 7 * i % 64;
    const std::span<const float> x = program.values("x").subspan(row * columns, columns);
    expect_close(program.values("y")[row * columns + column], expected(x, column), "an element");
  }
  for (auto _ : state) {
    const double part = part_of(copy_roof(), 10, bytes_moved, [&] { program.run(); });
    report(state, part, "of copy", target, Better::higher);
  }
}

// Ten operations of which none is another's inverse: nine that cost little, and one that does not. Memory is the bound,
// as in most models' pointwise chains.
void pointwise10_of_copy(benchmark::State &state) {
  struct Operation {
    const char *op, *right;  // of what is there so far, and this
  };
  const Operation operations[] = {{"mul", "0.75"}, {"sub", "0.5"},   {"abs", ""},     {"maximum", "0.125"},
                                  {"mul", "x"},    {"minimum", "1"}, {"add", "0.25"}, {"sigmoid", ""},
                                  {"mul", "1.5"},  {"sub", "x"}};
  std::string nodes;
  const auto add = [&](const std::string &op, const std::string &operands, const std::string &attrs) {
    const std::string name = "v" + std::to_string(nodes.size());
    nodes += (nodes.empty() ? "" : ", ") + ("{\"name\": \"" + name) + "\", \"op\": \"" + op + "\", \"inputs\": [" +
             operands + "]" + attrs + "}";
    return "\"" + name + "\"";
  };
  std::string value = "\"x\"";
  for (const Operation &each : operations) {
    std::string right = each.right;
    if (right == "x")
      right = "\"x\"";
    else if (!right.empty())
      right = add("full", "", ", \"attrs\": {\"shape\": [], \"dtype\": \"f32\", \"value\": " + right + "}");
    value = add(each.op, value + (right.empty() ? "" : ", " + right), "");
  }
  const std::string last = value.substr(1, value.size() - 2);
  measure(state, graph_of(nodes, last), 0.8, [](std::span<const float> row, size_t column) {
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
