// A step of decoding: keys and values of one token are written into caches, which are inputs, and attended to. What is
// written is a few KiB, whatever the caches hold.
#include <cmath>
#include <vector>

#include "figure.h"

namespace kiln::bench {
namespace {

constexpr int64_t heads = 16, width = 128, filled = 127;
int64_t capacity() { return effort().size<int64_t>(4096, 256); }  // two caches of 32 MiB

// At place `pos`, of which an input's shape tells; the places up to it are attended to.
std::string graph() {
  const std::string cache = "[1, 16, " + std::to_string(capacity()) + ", 128]", one = "[1, 16, 1, 128]";
  std::string inputs, nodes;
  for (const std::string side : {"k", "v"}) {
    inputs += f32_json(side + "_cache", cache) + ", " + f32_json(side, one) + ", ";
    nodes += R"({"name": ")" + side + R"(_new", "op": "slice_scatter", "inputs": [")" + side + R"(_cache", ")" + side +
             R"("], "attrs": {"dim": 2, "start": "pos", "end": "pos + 1"}},
              {"name": ")" +
             side + R"(_read", "op": "slice", "inputs": [")" + side +
             R"(_new"], "attrs": {"dim": 2, "start": 0, "end": "pos + 1"}},
              {"name": ")" +
             side + R"(_written", "op": "copy_", "inputs": [")" + side + R"(_cache", ")" + side + R"(_new"]}, )";
  }
  return R"({"kiln": 1, "symbols": {"pos": {"min": 0, "max": )" + std::to_string(capacity() - 1) +
         R"(}}, "inputs": [)" + inputs + f32_json("q", one) + ", " + f32_json("at", "[\"pos\"]") + R"(], "nodes": [)" +
         nodes + R"({"name": "y", "op": "attention", "inputs": ["q", "k_read", "v_read"]}],
         "outputs": [{"name": "y", "value": "y"}]})";
}

void kv_cache_step_ms(benchmark::State &state) {
  Program program(graph(), 0);
  for (const char *cache : {"k_cache", "v_cache"}) program.bind(cache, {1, heads, capacity(), width});
  for (const char *one : {"q", "k", "v", "y"}) program.bind(one, {1, heads, 1, width});
  program.bind("at", {filled});
  const auto rows = [&](const char *name) {
    return std::vector<float>(program.values(name).begin(), program.values(name).end());
  };
  std::vector<float> caches[] = {rows("k_cache"), rows("v_cache")};
  program.run();
  const auto place = [](int64_t head, int64_t row, int64_t column) {
    return static_cast<size_t>((head * capacity() + row) * width + column);
  };
  const auto of_token = [](int64_t head, int64_t column) { return static_cast<size_t>(head * width + column); };
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t column = 0; column < width; ++column) {
      caches[0][place(head, filled, column)] = program.values("k")[of_token(head, column)];
      caches[1][place(head, filled, column)] = program.values("v")[of_token(head, column)];
    }
  if (rows("k_cache") != caches[0] || rows("v_cache") != caches[1])
    throw cli::Failure("the caches do not hold the token");
  for (const int64_t head : {int64_t{0}, heads - 1}) {
    double sum = 0, weighted = 0;
    for (int64_t row = 0; row <= filled; ++row) {
      double score = 0;
      for (int64_t column = 0; column < width; ++column)
        score += double{program.values("q")[of_token(head, column)]} * double{caches[0][place(head, row, column)]};
      const double weight = std::exp(score / std::sqrt(double{width}) - width);
      sum += weight;
      weighted += weight * double{caches[1][place(head, row, 5)]};
    }
    expect_close(program.values("y")[of_token(head, 5)], weighted / sum, "an element");
  }
  for (auto _ : state) {
    const double seconds = fastest(20, [&] { program.run(); });
    report(state, seconds * 1e3, "ms", 1, Better::lower);
  }
}

KILN_FIGURE(kv_cache_step_ms)

}  // namespace
}  // namespace kiln::bench
