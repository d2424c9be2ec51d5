// What it costs to compile a graph by parts.
#include <array>
#include <cstring>

#include "figure.h"
#include "process.h"
#include "session.h"

namespace kiln::bench {
namespace {

using namespace cli;

// What lies between two regions in a call: a step, and memory for what crosses. 32 additions of 16 elements, each a
// region of its own, beside all of them in one.
void region_border_ns(benchmark::State &state) {
  constexpr int nodes = 32;
  const auto graph = [](bool apart) {
    std::string list, value = "a";
    for (int i = 0; i < nodes; ++i) {
      const std::string name = "s" + std::to_string(i);
      list += (i ? ", " : "") + ("{\"name\": \"" + name) + "\", \"op\": \"add\", \"inputs\": [\"" + value +
              "\", \"b\"], \"annotations\": {\"kiln.region\": {\"text\": \"r" + std::to_string(apart ? i : 0) + "\"}}}";
      value = name;
    }
    return "{\"kiln\": 1, \"inputs\": [" + f32_json("a", "[16]") + ", " + f32_json("b", "[16]") + "], \"nodes\": [" +
           list + "], \"outputs\": [{\"name\": \"c\", \"value\": \"" + value + "\"}]}";
  };
  Program together(graph(false), 1, "marked"), apart(graph(true), 1, "marked");
  for (Program *program : {&together, &apart})
    for (const char *name : {"a", "b", "c"}) program->bind(name, {16});
  if (apart.compile_report().count("made.partition.regions") != nodes) throw Failure("regions went together");
  const int calls = effort().size(10'000, 100);
  const auto seconds = [&](Program &program) {
    return fastest(20, [&] {
      for (int i = 0; i < calls; ++i) program.run();
    });
  };
  for (auto _ : state) {
    const double whole = seconds(together), parts = seconds(apart);
    for (size_t i = 0; i < 16; ++i)
      if (together.values("c")[i] != apart.values("c")[i]) throw Failure("regions gave other bits");
    report(state, (parts - whole) / calls / (nodes - 1) * 1e9, "ns", 100, Better::lower);
  }
}

// The graph of `chars` with the nodes marked whose names begin with "layerN." and go on with `part`.
std::string marked_chars(const std::string &part) {
  std::string json = read_file(KILN_MODELS_DIR "/chars/graph.json");
  for (size_t at = 0; (at = json.find("{\"name\": \"layer", at)) != json.npos; ++at) {
    const std::string layer = json.substr(at + 10, json.find('.', at) - at - 10);
    const size_t end = json.find('\n', at), close = json.rfind('}', end);
    const bool is_node = json.substr(at, end - at).find("\"op\"") != std::string::npos;
    if (is_node && json.compare(at + 10 + layer.size() + 1, part.size(), part) == 0)
      json.insert(close, ", \"annotations\": {\"kiln.region\": {\"text\": \"" + layer + "\"}}");
  }
  return json;
}

// `chars` with its weights, on 128 tokens.
class Chars {
 public:
  Chars(const std::string &json, const std::string &mode) : program_(json, 0, mode) {
    program_.bind_file(KILN_MODELS_DIR "/chars/weights.safetensors");
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<int64_t>(i % 60);
  }
  void run() {
    int64_t shape[] = {1, 128, 63};
    DLTensor in = {}, out = {};
    in.device = out.device = {kDLCPU, 0};
    in.shape = out.shape = shape;
    in.data = tokens_.data();
    in.ndim = 2;
    in.dtype = {kDLInt, 64, 1};
    out.data = logits_.data();
    out.ndim = 3;
    out.dtype = {kDLFloat, 32, 1};
    program_.run(std::array<const DLTensor *, 2>{&in, &out});
  }
  double compile_ms() const { return program_.compile_report().f64("total_ms"); }
  const std::vector<float> &logits() const { return logits_; }

 private:
  Program program_;
  std::vector<int64_t> tokens_ = std::vector<int64_t>(128);
  std::vector<float> logits_ = std::vector<float>(128 * 63);
};

struct Regional {
  double speed, compile;  // of the whole: its time by that of the parts, and the other way round for compiles
};
// Calls are made in turn, compiles as well.
Regional regional(const std::string &part) {
  const std::string json = marked_chars(part);
  Chars whole(json, "all"), parts(json, "marked");
  double run_seconds[] = {1e30, 1e30}, compile_ms[] = {1e30, 1e30};
  for (int round = 0; round < effort().rounds(200); ++round)
    for (const int i : {0, 1}) {
      Chars &chars = i ? parts : whole;
      const double begin = now();
      chars.run();
      run_seconds[i] = std::min(run_seconds[i], now() - begin);
    }
  if (std::memcmp(whole.logits().data(), parts.logits().data(), whole.logits().size() * sizeof(float)) != 0)
    throw Failure("regions gave other bits");
  for (int round = 0; round < effort().rounds(10); ++round)
    for (const int i : {0, 1}) compile_ms[i] = std::min(compile_ms[i], Chars(json, i ? "marked" : "all").compile_ms());
  return {run_seconds[0] / run_seconds[1], compile_ms[1] / compile_ms[0]};
}
const Regional &by_layer() {
  static const Regional measured = regional("");
  return measured;
}
const Regional &attention_alone() {
  static const Regional measured = regional("attention");
  return measured;
}

void chars_by_layer_speed(benchmark::State &state) {
  for (auto _ : state) report(state, by_layer().speed, "x", 0.7, Better::higher);
}
void chars_by_layer_compile(benchmark::State &state) {
  for (auto _ : state) report(state, by_layer().compile, "x", 1, Better::lower);
}
void chars_attention_marked_speed(benchmark::State &state) {
  for (auto _ : state) report(state, attention_alone().speed, "x", 0.7, Better::higher);
}
void chars_attention_marked_compile(benchmark::State &state) {
  for (auto _ : state) report(state, attention_alone().compile, "x", 1, Better::lower);
}

// How long cutting takes that has 1,000 of 10,000 nodes in regions of so many names.
double partition_ms(const std::string &shape, int names) {
  const int nodes = effort().size(10'000, 100);
  return run_process({KILN_BENCH_PARTITION, shape, std::to_string(nodes), std::to_string(nodes / 10),
                      std::to_string(std::min(names, nodes / 10))});
}
void report_partition(benchmark::State &state, const std::string &shape) {
  for (auto _ : state) {
    double worst = 0;
    int slowest = 0;
    for (const int names : {1, 10, 100, 1000})
      if (const double ms = partition_ms(shape, names); ms > worst) worst = ms, slowest = names;
    report(state, worst, "ms (" + std::to_string(slowest) + " names)", 20, Better::lower);
  }
}
void partition_chain_ms(benchmark::State &state) { report_partition(state, "chain"); }
void partition_crossing_ms(benchmark::State &state) { report_partition(state, "crossing"); }

KILN_FIGURE(region_border_ns)
KILN_FIGURE(partition_chain_ms)
KILN_FIGURE(partition_crossing_ms)
KILN_FIGURE(chars_by_layer_speed)
KILN_FIGURE(chars_by_layer_compile)
KILN_FIGURE(chars_attention_marked_speed)
KILN_FIGURE(chars_attention_marked_compile)

}  // namespace
}  // namespace kiln::bench
