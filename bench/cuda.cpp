// The backend `cuda` on this machine's GPU, arrays in its memory. Its kernels are loops that nobody tuned: what a
// figure misses is told as it is. Where there is no GPU the figures are skipped.
#include <cmath>

#include "gpu.h"
#include "machine.h"
#include "models.h"

namespace kiln::bench {
namespace {

using namespace cli;

using Texts = std::vector<std::pair<std::string, std::string>>;

std::string graph_json(const std::string &inputs, const std::string &nodes, const std::string &output) {
  return R"({"kiln": 1, "inputs": [)" + inputs + R"(], "nodes": [)" + nodes +
         R"(], "outputs": [{"name": "out", "value": ")" + output + R"("}]})";
}

Program on_the_gpu(const std::string &json) { return {json, 0, "all", {}, {}, Texts{{"backend", "cuda"}}}; }

std::vector<float> numbers(size_t count) {
  std::vector<float> made(count);
  fill(made);
  return made;
}

// Seconds of the fastest run of a graph, which waits for its end, and what it gave.
struct Timed {
  double seconds;
  std::vector<float> values;
};
Timed timed(Gpu &gpu, const std::string &json, std::vector<const DLTensor *> inputs, std::vector<int64_t> out_shape) {
  const std::vector<float> zeros(elements_of(out_shape));
  const DLTensor *const out = gpu.array(std::move(out_shape), zeros);
  Program program = on_the_gpu(json);
  inputs.push_back(out);
  const double seconds = fastest(20, [&] { program.run(inputs); });
  return {seconds, gpu.values(out)};
}

void cuda_compile_kernel_ms(benchmark::State &state) {
  const Gpu gpu;
  const std::string json = graph_json(f32_json("x", R"(["n"])"), R"({"name": "y", "op": "exp", "inputs": ["x"]})", "y");
  for (auto _ : state) {
    const double seconds = fastest(10, [&] {
      if (on_the_gpu(json).compile_report().i64("kernels_compiled") != 1) throw Failure("no kernel was compiled");
    });
    report(state, seconds * 1e3, "ms", 50, Better::lower);
  }
}

void cuda_call_overhead_us(benchmark::State &state) {
  Gpu gpu;
  const std::string json = graph_json(f32_json("x", "[16]") + ", " + f32_json("w", "[16]"),
                                      R"({"name": "y", "op": "add", "inputs": ["x", "w"]})", "y");
  const std::vector<float> x = numbers(16);
  for (auto _ : state) {
    const Timed run = timed(gpu, json, {gpu.array({16}, x), gpu.array({16}, x)}, {16});
    for (size_t i = 0; i < 16; ++i) expect_close(run.values[i], 2.0 * x[i], "a sum");
    report(state, run.seconds * 1e6, "us", 20, Better::lower);
  }
}

// What part of the rate of a copy a graph of x [rows, columns] reaches, whose result is a number a row, or like x.
void stream(benchmark::State &state, const std::string &nodes, bool by_rows, double target,
            double (*expected)(std::span<const float> row, size_t column)) {
  Gpu gpu;
  const size_t rows = effort().size(16384u, 64u), columns = 4096;
  const std::vector<float> x = numbers(rows * columns);
  const auto rows_n = static_cast<int64_t>(rows), columns_n = static_cast<int64_t>(columns);
  const std::string json = graph_json(f32_json("x", R"(["n", 4096])"), nodes, "y");
  for (auto _ : state) {
    const Timed run = timed(gpu, json, {gpu.array({rows_n, columns_n}, x)},
                            by_rows ? std::vector{rows_n} : std::vector{rows_n, columns_n});
    for (const size_t row : {size_t{0}, rows / 2, rows - 1})
      for (const size_t column : {size_t{0}, columns - 1})
        expect_close(run.values[by_rows ? row : row * columns + column],
                     expected(std::span(x).subspan(row * columns, columns), column), "an element");
    const size_t bytes = (x.size() + run.values.size()) * sizeof(float);
    const double copied =
        2 * static_cast<double>(x.size() * sizeof(float)) / gpu.copy_seconds(x.size() * sizeof(float));
    const double rate = static_cast<double>(bytes) / run.seconds;
    report(state, rate / copied, "of copying (" + std::to_string(std::lround(copied * 1e-9)) + " GB/s)", target,
           Better::higher);
  }
}

void cuda_pointwise_stream(benchmark::State &state) {
  stream(state, R"({"name": "y", "op": "tanh", "inputs": ["x"]})", false, 0.9,
         [](std::span<const float> row, size_t column) { return std::tanh(double{row[column]}); });
}
void cuda_sum_rows_stream(benchmark::State &state) {
  stream(state, R"({"name": "y", "op": "sum", "inputs": ["x"], "attrs": {"dims": [1]}})", true, 0.8,
         [](std::span<const float> row, size_t) {
           double sum = 0;
           for (const float v : row) sum += v;
           return sum;
         });
}
void cuda_softmax_stream(benchmark::State &state) {
  stream(state, R"({"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}})", false, 0.8,
         [](std::span<const float> row, size_t column) {
           double sum = 0;
           for (const float v : row) sum += std::exp(double{v});
           return std::exp(double{row[column]}) / sum;
         });
}

void cuda_matmul_1024_gflops(benchmark::State &state) {
  Gpu gpu;
  const int64_t n = effort().size(1024, 64);
  const auto count = static_cast<size_t>(n * n), size = static_cast<size_t>(n);
  const std::string shape = "[" + std::to_string(n) + ", " + std::to_string(n) + "]";
  const std::vector<float> x = numbers(count);
  const std::string json = graph_json(f32_json("x", shape) + ", " + f32_json("w", shape),
                                      R"({"name": "y", "op": "matmul", "inputs": ["x", "w"]})", "y");
  for (auto _ : state) {
    const Timed run = timed(gpu, json, {gpu.array({n, n}, x), gpu.array({n, n}, x)}, {n, n});
    for (const size_t at : {size_t{0}, count / 2 + 3, count - 1}) {
      double sum = 0;
      for (size_t k = 0; k < size; ++k) sum += double{x[at / size * size + k]} * x[k * size + at % size];
      expect_close(run.values[at], sum, "a product");
    }
    report(state, 2e-9 * std::pow(static_cast<double>(n), 3) / run.seconds, "GFLOP/s", 10'000, Better::higher);
  }
}

// From the host's memory and back, beside all cores.
void cuda_chars_128(benchmark::State &state) {
  const Gpu gpu;
  Program cpu(model_json("chars"), 0), cuda = on_the_gpu(model_json("chars"));
  report_beside(state, "chars", tokens_of(128), {1, 128, 63}, {&cpu, &cuda},
                {std::to_string(cores()) + " cores", "GPU"}, 1e-3f);
}

KILN_FIGURE(cuda_compile_kernel_ms)
KILN_FIGURE(cuda_call_overhead_us)
KILN_FIGURE(cuda_pointwise_stream)
KILN_FIGURE(cuda_sum_rows_stream)
KILN_FIGURE(cuda_softmax_stream)
KILN_FIGURE(cuda_matmul_1024_gflops)
KILN_FIGURE(cuda_chars_128)

}  // namespace
}  // namespace kiln::bench
