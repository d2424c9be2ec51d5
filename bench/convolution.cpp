// Convolutions by windows of 3 by 3 under rounding=relaxed, where they are made of transformed tiles, beside sums of
// products in order.
#include <algorithm>

#include "figure.h"

namespace kiln::bench {
namespace {

// Of `channels` on both sides, images of `side` by `side`.
struct Convolution {
  Program program;
  Convolution(int64_t channels, int64_t side, const std::string &rounding)
      : program(graph(channels, side), 0, "all", {}, {}, {{"rounding", rounding}}) {
    program.bind("w", {channels, channels, 3, 3});
    for (const char *name : {"x", "y"}) program.bind(name, {1, channels, side, side});
    program.run();
  }
  static std::string graph(int64_t channels, int64_t side) {
    const std::string c = std::to_string(channels), s = std::to_string(side);
    return "{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[1, " + c + ", " + s + ", " + s + "]") +
           "], \"parameters\": [" + f32_json("w", "[" + c + ", " + c + ", 3, 3]") +
           "], \"nodes\": [{\"name\": \"y\", \"op\": \"correlate2d\", \"inputs\": [\"x\", \"w\"], \"attrs\": "
           "{\"padding\": [1, 1]}}], \"outputs\": [{\"name\": \"y\", \"value\": \"y\"}]}";
  }
};

void measure_relaxed(benchmark::State &state, int64_t channels, int64_t side, double target) {
  Convolution strict(channels, side, "strict"), relaxed(channels, side, "relaxed");
  const std::span<const float> expected = strict.program.values("y"), got = relaxed.program.values("y");
  for (size_t i = 0; i < got.size(); i += 97) expect_close(got[i], expected[i], "a convolution's element");
  for (auto _ : state) {
    double of_strict = 1e30, of_relaxed = 1e30;
    for (int turn = 0; turn < effort().rounds(10); ++turn) {
      of_strict = std::min(of_strict, fastest(4, [&] { strict.program.run(); }));
      of_relaxed = std::min(of_relaxed, fastest(4, [&] { relaxed.program.run(); }));
    }
    report(state, of_strict / of_relaxed, "times strict's speed", target, Better::higher);
  }
}

void conv_relaxed_64x56(benchmark::State &state) { measure_relaxed(state, 64, 56, 1.8); }
void conv_relaxed_128x28(benchmark::State &state) { measure_relaxed(state, 128, 28, 1.8); }
void conv_relaxed_256x14(benchmark::State &state) { measure_relaxed(state, 256, 14, 1.8); }
void conv_relaxed_512x7(benchmark::State &state) { measure_relaxed(state, 512, 7, 1.5); }

KILN_FIGURE(conv_relaxed_64x56)
KILN_FIGURE(conv_relaxed_128x28)
KILN_FIGURE(conv_relaxed_256x14)
KILN_FIGURE(conv_relaxed_512x7)

}  // namespace
}  // namespace kiln::bench
