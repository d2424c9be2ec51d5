// A plugin's backend beside Kiln's own, on both models: plugins/onednn_backend.
#include <array>
#include <cmath>

#include "figure.h"
#include "session.h"

namespace kiln::bench {
namespace {

using namespace cli;

void load_onednn(kiln_context *context) {
  const std::string path = KILN_BENCH_ONEDNN;
  check(kiln_plugin_load(context, path.data(), path.size(), nullptr));
}

struct Array {
  std::vector<int64_t> shape;
  std::vector<float> floats = {};
  std::vector<int64_t> integers = {};  // instead

  DLTensor tensor() {
    DLTensor made = {};
    made.data = integers.empty() ? static_cast<void *>(floats.data()) : integers.data();
    made.device = {kDLCPU, 0};
    made.ndim = static_cast<int32_t>(shape.size());
    made.dtype = integers.empty() ? DLDataType{kDLFloat, 32, 1} : DLDataType{kDLInt, 64, 1};
    made.shape = shape.data();
    return made;
  }
};

// How much faster a model is on onednn than on cpu, called in turn; with their microseconds.
void compare(benchmark::State &state, const std::string &model, Array input, std::vector<int64_t> output_shape,
             const std::string &not_finite) {
  const std::string folder = KILN_MODELS_DIR "/" + model, json = read_file(folder + "/graph.json");
  Program cpu(json, 0);
  Program onednn(json, 0, "all", {}, load_onednn, {{"backend", "onednn"}, {"backend.onednn.not_finite", not_finite}});
  size_t count = 1;
  for (const int64_t size : output_shape) count *= static_cast<size_t>(size);
  Array outputs[2] = {{output_shape, std::vector<float>(count)}, {output_shape, std::vector<float>(count)}};
  double best[] = {1e30, 1e30};
  for (Program *program : {&cpu, &onednn}) program->bind_file(folder + "/weights.safetensors");
  // Blocks of calls in turn: the threads of the one look for work a while after its last call.
  const int calls = effort().size(20, 1);
  for (int round = 0; round < effort().rounds(60) + 1; ++round)
    for (const int i : {0, 1})
      for (int call = 0; call < calls; ++call) {
        const DLTensor in = input.tensor(), out = outputs[i].tensor();
        const double begin = now();
        (i ? onednn : cpu).run(std::array<const DLTensor *, 2>{&in, &out});
        best[i] = std::min(best[i], now() - begin);
      }
  for (size_t k = 0; k < count; ++k) {
    const float expected = outputs[0].floats[k], got = outputs[1].floats[k];
    if (!(std::abs(got - expected) <= 1e-4f * (1 + std::abs(expected)))) throw Failure("onednn gave other values");
  }
  for (auto _ : state) {
    const auto us = [](double seconds) { return std::to_string(std::lround(seconds * 1e6)); };
    report(state, best[0] / best[1], "x (cpu " + us(best[0]) + " us, onednn " + us(best[1]) + " us)", 1,
           Better::higher);
  }
}

void compare_digits(benchmark::State &state, int64_t batch, const std::string &not_finite) {
  Array images{{batch, 1, 8, 8}, std::vector<float>(static_cast<size_t>(batch) * 64)};
  for (size_t i = 0; i < images.floats.size(); ++i) images.floats[i] = static_cast<float>(i % 17) / 16;
  compare(state, "digits", std::move(images), {batch, 10}, not_finite);
}
void compare_chars(benchmark::State &state, int64_t length) {
  Array tokens{{1, length}, {}, std::vector<int64_t>(static_cast<size_t>(length))};
  for (size_t i = 0; i < tokens.integers.size(); ++i) tokens.integers[i] = static_cast<int64_t>(i % 60);
  compare(state, "chars", std::move(tokens), {1, length, 63}, "kept");
}

void onednn_digits_64(benchmark::State &state) { compare_digits(state, 64, "lost"); }
void onednn_digits_64_kept(benchmark::State &state) { compare_digits(state, 64, "kept"); }
void onednn_digits_1(benchmark::State &state) { compare_digits(state, 1, "lost"); }
void onednn_chars_128(benchmark::State &state) { compare_chars(state, 128); }
void onednn_chars_1(benchmark::State &state) { compare_chars(state, 1); }

KILN_FIGURE(onednn_digits_64)
KILN_FIGURE(onednn_digits_64_kept)
KILN_FIGURE(onednn_digits_1)
KILN_FIGURE(onednn_chars_128)
KILN_FIGURE(onednn_chars_1)

}  // namespace
}  // namespace kiln::bench
