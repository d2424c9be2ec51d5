// The backend `cuda` on this machine's GPU, arrays in its memory. Its kernels are loops that nobody tuned: what a
// figure misses is told as it is. Where there is no GPU the figures are skipped.
#include <algorithm>
#include <array>
#include <cmath>

#include "figure.h"
#include "gpu.h"
#include "handles.h"
#include "machine.h"
#include "session.h"

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
  for (size_t i = 0; i < count; ++i) made[i] = 0.5f + static_cast<float>(i % 1021) / 1021.0f;
  return made;
}

// A graph of the optional input `w`, of the shape `w_shape`, and of x; seconds of its fastest run, which waits for the
// end.
struct Timed {
  double seconds;
  std::vector<float> values;
};
Timed timed(Gpu &gpu, const std::string &json, std::vector<const DLTensor *> inputs, std::vector<int64_t> out_shape) {
  size_t count = 1;
  for (const int64_t size : out_shape) count *= static_cast<size_t>(size);
  const DLTensor *const out = gpu.array(std::move(out_shape), std::vector<float>(count));
  Program program = on_the_gpu(json);
  inputs.push_back(out);
  const double seconds = fastest(20, [&] { program.run(inputs); });
  return {seconds, gpu.values(out)};
}

void cuda_compile_kernel_ms(benchmark::State &state) {
  Gpu gpu;
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

// What part of the rate of a copy a graph of x [rows, columns] reaches that writes `out_shape`.
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

// The model chars on the GPU, from the host's memory and back, beside all cores.
void cuda_chars_128(benchmark::State &state) {
  const Gpu gpu;
  const std::string folder = KILN_MODELS_DIR "/chars", json = read_file(folder + "/graph.json");
  Program cpu(json, 0), cuda = on_the_gpu(json);
  std::array<int64_t, 2> in_shape{1, 128};
  std::array<int64_t, 3> out_shape{1, 128, 63};
  std::vector<int64_t> tokens(128);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(i % 60);
  std::array<std::vector<float>, 2> logits{std::vector<float>(128 * 63), std::vector<float>(128 * 63)};
  double seconds[2];
  for (auto _ : state) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      Program &program = i ? cuda : cpu;
      program.bind_file(folder + "/weights.safetensors");
      DLTensor in = {}, out = {};
      in.data = tokens.data();
      in.device = out.device = {kDLCPU, 0};
      in.ndim = 2, in.dtype = {kDLInt, 64, 1}, in.shape = in_shape.data();
      out.data = logits[i].data();
      out.ndim = 3, out.dtype = {kDLFloat, 32, 1}, out.shape = out_shape.data();
      seconds[i] = fastest(50, [&] { program.run(std::array<const DLTensor *, 2>{&in, &out}); });
    }
    for (size_t k = 0; k < logits[0].size(); ++k)
      if (!(std::abs(logits[1][k] - logits[0][k]) <= 1e-3f * (1 + std::abs(logits[0][k]))))
        throw Failure("cuda gave other logits");
    const auto us = [](double s) { return std::to_string(std::lround(s * 1e6)); };
    report(state, seconds[0] / seconds[1],
           "x (" + std::to_string(cores()) + " cores " + us(seconds[0]) + " us, GPU " + us(seconds[1]) + " us)", 1,
           Better::higher);
  }
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
