// What goes along a sequence, and what is added where indices say: against a copy, the machine's multiply-adds, other
// forms of the same, and a plain loop.
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include "figure.h"
#include "machine.h"

namespace kiln::bench {
namespace {

// h = a h + x along 1,024 turns of 4,096 values: three arrays through memory.
constexpr std::string_view recurrence = R"({"kiln": 1,
  "inputs": [{"name": "h", "type": {"dtype": "f32", "shape": [4096]}}, {"name": "a", "type": {"dtype": "f32", "shape": ["t", 4096]}},
             {"name": "x", "type": {"dtype": "f32", "shape": ["t", 4096]}}],
  "nodes": [{"name": "s", "op": "scan", "inputs": ["h", "a", "x"], "attrs": {"body_graph": "turn"}}],
  "outputs": [{"name": "last", "value": "s:0"}, {"name": "y", "value": "s:1"}],
  "graphs": {"turn": {"inputs": [{"name": "h", "type": {"dtype": "f32", "shape": ["k"]}},
                                 {"name": "a", "type": {"dtype": "f32", "shape": ["k"]}},
                                 {"name": "x", "type": {"dtype": "f32", "shape": ["k"]}}],
                      "nodes": [{"name": "p", "op": "mul", "inputs": ["a", "h"]}, {"name": "r", "op": "add", "inputs": ["p", "x"]}],
                      "outputs": [{"name": "h", "value": "r"}, {"name": "y", "value": "r"}]}}})";

void recurrence_of_copy(benchmark::State &state) {
  const auto turns = effort().size<int64_t>(4096, 16);
  constexpr int64_t width = 4096;
  Program program(std::string(recurrence), 0);
  for (const char *name : {"a", "x", "y"}) program.bind(name, {turns, width});
  for (const char *name : {"h", "last"}) program.bind(name, {width});
  for (float &a : program.values("a")) a *= 0.5F;  // else what is carried grows without end
  program.run();
  double h = program.values("h")[7];
  for (size_t t = 0; t < static_cast<size_t>(turns); ++t) {
    const size_t at = t * width + 7;
    h = double{program.values("a")[at]} * h + double{program.values("x")[at]};
    expect_close(program.values("y")[at], h, "what is carried");
  }
  for (auto _ : state) {
    const double bytes = 3.0 * sizeof(float) * static_cast<double>(turns) * width;
    report(state, part_of(copy_roof(), 10, bytes, [&] { program.run(); }), "of copy", 0.5, Better::higher);
  }
}

void lstm_of_peak(benchmark::State &state) {
  const auto turns = effort().size<int64_t>(64, 3);
  constexpr int64_t batch = 32, inputs = 256, hidden = 256;
  Program program(R"({"kiln": 1, "inputs": [)" + f32_json("x", R"(["t", 32, 256])") + R"(], "parameters": [)" +
                      f32_json("wi", "[1024, 256]") + ", " + f32_json("wh", "[1024, 256]") + ", " +
                      f32_json("bi", "[1024]") + ", " + f32_json("bh", "[1024]") +
                      R"(], "nodes": [{"name": "l", "op": "lstm", "inputs": ["x", "wi", "wh", "bi", "bh"]}],
                        "outputs": [{"name": "y", "value": "l:0"}, {"name": "h", "value": "l:1"},
                                    {"name": "c", "value": "l:2"}]})",
                  1);
  for (const char *name : {"wi", "wh"}) program.bind(name, {4 * hidden, inputs});
  for (const char *name : {"bi", "bh"}) program.bind(name, {4 * hidden});
  for (const char *name : {"wi", "wh"})
    for (float &w : program.values(name)) w = (w - 1) / 16;
  program.bind("x", {turns, batch, inputs});
  program.bind("y", {turns, batch, hidden});
  for (const char *name : {"h", "c"}) program.bind(name, {1, batch, hidden});
  program.run();
  // The first turn, whose state is 0: c = i g, h = o tanh(c).
  const auto gate = [&](size_t number, size_t j) {
    double sum = double{program.values("bi")[number * hidden + j]} + double{program.values("bh")[number * hidden + j]};
    for (size_t k = 0; k < inputs; ++k)
      sum += double{program.values("wi")[(number * hidden + j) * inputs + k]} * double{program.values("x")[k]};
    return sum;
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (size_t j = 0; j < hidden; j += 37)
    expect_close(program.values("y")[j], sigmoid(gate(3, j)) * std::tanh(sigmoid(gate(0, j)) * std::tanh(gate(2, j))),
                 "the first state");
  for (auto _ : state) {
    const double flops = 2.0 * static_cast<double>(turns) * batch * 4 * hidden * (inputs + hidden);
    report(state, part_of(fma_roof(1), 20, flops, [&] { program.run(); }), "of peak", 0.4, Better::higher);
  }
}

// A gru of 32 values, whose turns are one kernel, against what it is where the batch is not known: steps of a plan.
void small_gru_of_steps(benchmark::State &state) {
  const auto turns = effort().size<int64_t>(256, 3);
  constexpr int64_t width = 32;
  const auto make = [&](const std::string &batch) {
    auto program = std::make_unique<Program>(
        R"({"kiln": 1, "inputs": [)" + f32_json("x", R"(["t", )" + batch + ", 32]") + R"(], "parameters": [)" +
            f32_json("wi", "[96, 32]") + ", " + f32_json("wh", "[96, 32]") + ", " + f32_json("bi", "[96]") + ", " +
            f32_json("bh", "[96]") + R"(],
            "nodes": [{"name": "l", "op": "gru", "inputs": ["x", "wi", "wh", "bi", "bh"]}],
            "outputs": [{"name": "y", "value": "l:0"}, {"name": "h", "value": "l:1"}]})",
        1);
    for (const char *name : {"wi", "wh"}) {
      program->bind(name, {3 * width, width});
      for (float &w : program->values(name)) w = (w - 1) / 4;
    }
    for (const char *name : {"bi", "bh"}) program->bind(name, {3 * width});
    program->bind("x", {turns, 1, width});
    program->bind("y", {turns, 1, width});
    program->bind("h", {1, 1, width});
    program->run();
    return program;
  };
  const auto one = make("1"), steps = make("\"b\"");
  const std::span<const float> y = one->values("y"), in_steps = steps->values("y");
  for (size_t i = 0; i < y.size(); ++i) expect_close(y[i], in_steps[i], "a state");
  const Roof in_turn{static_cast<double>(turns), [&] { steps->run(); }};
  for (auto _ : state)
    report(state, part_of(in_turn, 20, static_cast<double>(turns), [&] { one->run(); }), "of the steps' rate", 1.5,
           Better::higher);
}

// h = h / 2 + x of one channel, by a scan in order and by an associative one, whose blocks go side by
// side on all cores.
constexpr std::string_view halving = R"({"kiln": 1,
  "inputs": [{"name": "h", "type": {"dtype": "f32", "shape": []}}, {"name": "x", "type": {"dtype": "f32", "shape": ["t"]}}],
  "nodes": [{"name": "s", "op": "scan", "inputs": ["h", "x"], "attrs": {"body_graph": "turn"}}],
  "outputs": [{"name": "y", "value": "s:1"}],
  "graphs": {"turn": {"inputs": [{"name": "h", "type": {"dtype": "f32", "shape": []}},
                                 {"name": "x", "type": {"dtype": "f32", "shape": []}}],
    "nodes": [{"name": "half", "op": "full", "attrs": {"dtype": "f32", "shape": [], "value": 0.5}},
              {"name": "p", "op": "mul", "inputs": ["half", "h"]}, {"name": "r", "op": "add", "inputs": ["p", "x"]}],
    "outputs": [{"name": "h", "value": "r"}, {"name": "y", "value": "r"}]}}})";
constexpr std::string_view halving_in_blocks = R"({"kiln": 1,
  "inputs": [{"name": "a", "type": {"dtype": "f32", "shape": ["t"]}}, {"name": "x", "type": {"dtype": "f32", "shape": ["t"]}}],
  "nodes": [{"name": "s", "op": "associative_scan", "inputs": ["a", "x"], "attrs": {"combine_graph": "pair"}}],
  "outputs": [{"name": "y", "value": "s:1"}],
  "graphs": {"pair": {"inputs": [{"name": "a", "type": {"dtype": "f32", "shape": []}},
                                 {"name": "x", "type": {"dtype": "f32", "shape": []}},
                                 {"name": "b", "type": {"dtype": "f32", "shape": []}},
                                 {"name": "y", "type": {"dtype": "f32", "shape": []}}],
    "nodes": [{"name": "ab", "op": "mul", "inputs": ["a", "b"]}, {"name": "bx", "op": "mul", "inputs": ["b", "x"]},
              {"name": "r", "op": "add", "inputs": ["bx", "y"]}],
    "outputs": [{"name": "ab", "value": "ab"}, {"name": "r", "value": "r"}]}}})";

void associative_scan_of_scan(benchmark::State &state) {
  const auto length = effort().size<int64_t>(1 << 20, 20000);
  Program scan(std::string(halving), 0), blocks(std::string(halving_in_blocks), 0);
  scan.bind("h", {});
  blocks.bind("a", {length});
  for (Program *each : {&scan, &blocks})
    for (const char *name : {"x", "y"}) each->bind(name, {length});
  scan.values("h")[0] = 0;
  std::ranges::fill(blocks.values("a"), 0.5F);
  std::ranges::copy(scan.values("x"), blocks.values("x").begin());
  scan.run();
  blocks.run();
  double h = 0;
  for (size_t t = 0; t < static_cast<size_t>(length); ++t) {
    h = h / 2 + double{scan.values("x")[t]};
    expect_close(scan.values("y")[t], h, "an element of the scan");
    expect_close(blocks.values("y")[t], h, "an element of the associative one");
  }
  const Roof in_order{static_cast<double>(length), [&] { scan.run(); }};
  for (auto _ : state)
    report(state, part_of(in_order, 10, static_cast<double>(length), [&] { blocks.run(); }), "of the scan's rate", 0.5,
           Better::higher);
}

// A million values into 65,536 sums, on one thread, against a loop that does the same.
void scatter_add_of_loop(benchmark::State &state) {
  const auto count = effort().size<size_t>(1 << 20, 1 << 12);
  constexpr size_t sums = 1 << 16;
  Program program(R"({"kiln": 1, "inputs": [)" + f32_json("y", R"(["m"])") + ", " + f32_json("at", R"(["n"])") + ", " +
                      f32_json("x", R"(["n"])") +
                      R"(], "nodes": [{"name": "i", "op": "convert", "inputs": ["at"], "attrs": {"dtype": "i64"}},
                        {"name": "s", "op": "index_add", "inputs": ["y", "i", "x"], "attrs": {"dim": 0}}],
                        "outputs": [{"name": "z", "value": "s"}]})",
                  1);
  program.bind("y", {sums});
  program.bind("z", {sums});
  for (const char *name : {"at", "x"}) program.bind(name, {static_cast<int64_t>(count)});
  std::mt19937 random(1);
  std::vector<int64_t> index;
  for (float &at : program.values("at")) {
    index.push_back(static_cast<int64_t>(random() % sums));
    at = static_cast<float>(index.back());
  }
  std::vector<float> result(sums);
  const Roof loop{static_cast<double>(count), [&] {
                    std::ranges::copy(program.values("y"), result.begin());
                    const std::span<const float> x = program.values("x");
                    for (size_t i = 0; i < count; ++i) result[static_cast<size_t>(index[i])] += x[i];
                    benchmark::DoNotOptimize(result.data());
                  }};
  program.run();
  loop.run();
  for (size_t i = 0; i < sums; ++i) expect_close(program.values("z")[i], result[i], "a sum");
  for (auto _ : state)
    report(state, part_of(loop, 10, static_cast<double>(count), [&] { program.run(); }), "of a loop", 0.5,
           Better::higher);
}

KILN_FIGURE(recurrence_of_copy)
KILN_FIGURE(lstm_of_peak)
KILN_FIGURE(small_gru_of_steps)
KILN_FIGURE(associative_scan_of_scan)
KILN_FIGURE(scatter_add_of_loop)

}  // namespace
}  // namespace kiln::bench
