#include "models.h"

#include <algorithm>
#include <cmath>

#include "session.h"

namespace kiln::bench {

using namespace cli;

DLTensor Array::tensor() {
  DLTensor made = {};
  made.data = integers.empty() ? static_cast<void *>(floats.data()) : integers.data();
  made.device = {kDLCPU, 0};
  made.ndim = static_cast<int32_t>(shape.size());
  made.dtype = integers.empty() ? DLDataType{kDLFloat, 32, 1} : DLDataType{kDLInt, 64, 1};
  made.shape = shape.data();
  return made;
}

Array images_of(int64_t batch) {
  Array images{{batch, 1, 8, 8}, std::vector<float>(static_cast<size_t>(batch) * 64)};
  for (size_t i = 0; i < images.floats.size(); ++i) images.floats[i] = static_cast<float>(i % 17) / 16;
  return images;
}

Array tokens_of(int64_t length) {
  Array tokens{{1, length}, {}, std::vector<int64_t>(static_cast<size_t>(length))};
  for (size_t i = 0; i < tokens.integers.size(); ++i) tokens.integers[i] = static_cast<int64_t>(i % 60);
  return tokens;
}

std::string model_json(const std::string &model) { return read_file(KILN_MODELS_DIR "/" + model + "/graph.json"); }

void report_beside(benchmark::State &state, const std::string &model, Array input, std::vector<int64_t> output_shape,
                   std::array<Program *, 2> programs, const std::array<std::string, 2> &names, float tolerance) {
  const size_t count = elements_of(output_shape);
  Array outputs[2] = {{output_shape, std::vector<float>(count)}, {output_shape, std::vector<float>(count)}};
  double best[] = {1e30, 1e30};
  for (Program *program : programs) program->bind_file(KILN_MODELS_DIR "/" + model + "/weights.safetensors");
  // Blocks of calls in turn: the threads of the one look for work a while after its last call.
  const int calls = effort().size(20, 1);
  for (int round = 0; round < effort().rounds(60) + 1; ++round)
    for (const size_t i : {size_t{0}, size_t{1}})
      for (int call = 0; call < calls; ++call) {
        const DLTensor in = input.tensor(), out = outputs[i].tensor();
        const double begin = now();
        programs[i]->run(std::array<const DLTensor *, 2>{&in, &out});
        best[i] = std::min(best[i], now() - begin);
      }
  for (size_t k = 0; k < count; ++k) {
    const float expected = outputs[0].floats[k], got = outputs[1].floats[k];
    if (!(std::abs(got - expected) <= tolerance * (1 + std::abs(expected))))
      throw Failure(names[1] + " gave other values");
  }
  for (auto _ : state) {
    const auto us = [](double seconds) { return std::to_string(std::lround(seconds * 1e6)) + " us"; };
    report(state, best[0] / best[1], "x (" + names[0] + " " + us(best[0]) + ", " + names[1] + " " + us(best[1]) + ")",
           1, Better::higher);
  }
}

}  // namespace kiln::bench
