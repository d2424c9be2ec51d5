// What programs for some sizes are worth, and what it costs to choose among them.
#include <array>
#include <cstring>

#include "figure.h"
#include "session.h"

namespace kiln::bench {
namespace {

using cli::Failure;

DLTensor tensor_of(void *data, DLDataType type, int64_t *shape, int rank) {
  DLTensor tensor = {};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = rank;
  tensor.dtype = type;
  tensor.shape = shape;
  return tensor;
}

// Runs whose sizes differ from the last one's, each with an entry of its own, beside runs of one size: guards are
// compared, and shapes with those that the entry had.
void entry_choice_ns(benchmark::State &state) {
  constexpr int64_t least = 16, count = 8;
  std::vector<std::string> sizes;
  for (int64_t n = least; n < least + count; ++n) sizes.push_back("n=" + std::to_string(n));
  Program program("{\"kiln\": 1, \"inputs\": [" + f32_json("a", "[\"n\"]") + ", " + f32_json("b", "[\"n\"]") +
                      "], \"nodes\": [{\"name\": \"s\", \"op\": \"add\", \"inputs\": [\"a\", \"b\"]}], "
                      "\"outputs\": [{\"name\": \"c\", \"value\": \"s\"}]}",
                  1, "all", sizes);
  std::array<float, least + count> a = {}, b = {}, c = {};
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i), b[i] = 0.5f;
  int64_t shapes[count];
  std::vector<std::array<DLTensor, 3>> tensors;
  std::vector<std::array<const DLTensor *, 3>> args(count);
  for (int64_t i = 0; i < count; ++i) {
    shapes[i] = least + i;
    tensors.push_back({});
    for (size_t k = 0; k < 3; ++k)
      tensors.back()[k] = tensor_of(k == 0 ? a.data() : k == 1 ? b.data() : c.data(), {kDLFloat, 32, 1}, &shapes[i], 1);
  }
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < 3; ++k) args[i][k] = &tensors[i][k];
  for (size_t i = 0; i < count; ++i) {
    c.fill(0);
    program.run(args[i]);
    if (program.ran() != sizes[i]) throw Failure(program.ran() + " ran for " + sizes[i]);
    for (size_t k = 0; k < c.size(); ++k)
      if (c[k] != (k < least + i ? a[k] + b[k] : 0)) throw Failure("a wrong sum");
  }
  const int calls = effort().size(10'000, 100);
  const auto seconds = [&](size_t step) {
    return fastest(20, [&] {
      for (int i = 0; i < calls; ++i) program.run(args[static_cast<size_t>(i) * step % count]);
    });
  };
  for (auto _ : state) {
    const double same = seconds(0), other = seconds(1);
    report(state, (other - same) / calls * 1e9, "ns", 100, Better::lower);
  }
}

// A gru of 32 values for one row, whose batch is a symbol: where it is known, all turns are one kernel. The time of the
// program for all sizes by that of the one for a batch of 1.
void gru_specialized_speed(benchmark::State &state) {
  const auto turns = effort().size<int64_t>(256, 3);
  constexpr int64_t width = 32;
  const std::string json =
      R"({"kiln": 1, "inputs": [)" + f32_json("x", R"(["t", "b", 32])") + R"(], "parameters": [)" +
      f32_json("wi", "[96, 32]") + ", " + f32_json("wh", "[96, 32]") +
      R"(], "nodes": [{"name": "l", "op": "gru", "inputs": ["x", "wi", "wh"], "attrs": {"bias": false}}],
                               "outputs": [{"name": "y", "value": "l:0"}]})";
  Program general(json, 1), fixed(json, 1, "all", {"b=1"});
  for (Program *program : {&general, &fixed}) {
    for (const char *name : {"wi", "wh"}) {
      program->bind(name, {3 * width, width});
      for (float &w : program->values(name)) w = (w - 1) / 4;
    }
    program->bind("x", {turns, 1, width});
    program->bind("y", {turns, 1, width});
    program->run();
  }
  if (fixed.ran() != "b=1" || general.ran() != "general") throw Failure("another program ran");
  const std::span<const float> y = general.values("y"), of_one = fixed.values("y");
  if (std::memcmp(y.data(), of_one.data(), y.size_bytes()) != 0) throw Failure("fixed sizes gave other bits");
  for (auto _ : state) {
    double best[] = {1e30, 1e30};
    for (int round = 0; round < effort().rounds(50); ++round)
      for (const int i : {0, 1}) {
        const double begin = now();
        (i ? fixed : general).run();
        best[i] = std::min(best[i], now() - begin);
      }
    report(state, best[0] / best[1], "x", 1.5, Better::higher);
  }
}

// `chars` on 128 tokens, the same: its kernels gain nothing from what they know, and must not lose.
void chars_specialized_speed(benchmark::State &state) {
  const std::string json = cli::read_file(KILN_MODELS_DIR "/chars/graph.json");
  Program general(json, 0), fixed(json, 0, "all", {"batch=1,length=128"});
  std::vector<int64_t> tokens(128);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(i % 60);
  std::vector<float> logits[2];
  int64_t shape[] = {1, 128, 63};
  const DLTensor in = tensor_of(tokens.data(), {kDLInt, 64, 1}, shape, 2);
  double best[] = {1e30, 1e30};
  for (Program *program : {&general, &fixed}) program->bind_file(KILN_MODELS_DIR "/chars/weights.safetensors");
  for (auto _ : state) {
    for (int round = 0; round < effort().rounds(200) + 1; ++round)
      for (const int i : {0, 1}) {
        logits[i].resize(128 * 63);
        const DLTensor out = tensor_of(logits[i].data(), {kDLFloat, 32, 1}, shape, 3);
        const double begin = now();
        (i ? fixed : general).run(std::array<const DLTensor *, 2>{&in, &out});
        best[i] = std::min(best[i], now() - begin);
      }
    if (fixed.ran() != "batch=1,length=128" || general.ran() != "general") throw Failure("another program ran");
    if (std::memcmp(logits[0].data(), logits[1].data(), logits[0].size() * sizeof(float)) != 0)
      throw Failure("fixed sizes gave other bits");
    report(state, best[0] / best[1], "x", 0.95, Better::higher);
  }
}

KILN_FIGURE(entry_choice_ns)
KILN_FIGURE(gru_specialized_speed)
KILN_FIGURE(chars_specialized_speed)

}  // namespace
}  // namespace kiln::bench
