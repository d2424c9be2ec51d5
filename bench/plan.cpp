// How planning grows: a graph ten times as large should take about ten times the time and memory, kernels aside.
#include <algorithm>
#include <map>

#include "figure.h"
#include "process.h"
#include "session.h"
#include "tests/temporary_folder.h"

namespace kiln::bench {
namespace {

// A graph as it grows, over the input x [n, 64] and the parameters w [64, 64] and s [64].
class Growing {
 public:
  std::string add(const std::string &op, const std::vector<std::string> &operands) {
    const std::string name = "n" + std::to_string(count_++);
    std::string list;
    for (const std::string &operand : operands) list += (list.empty() ? "\"" : ", \"") + operand + "\"";
    nodes_ += (nodes_.empty() ? "" : ",\n") + ("{\"name\": \"" + name) + "\", \"op\": \"" + op + "\", \"inputs\": [" +
              list + "]}";
    return name;
  }
  // A new input [n, 64].
  std::string input() {
    const std::string name = "in" + std::to_string(count_);
    inputs_ += ", " + f32_json(name, "[\"n\", 64]");
    return name;
  }
  void output(const std::string &value) {
    outputs_ += (outputs_.empty() ? "" : ", ") + ("{\"name\": \"out_" + value) + "\", \"value\": \"" + value + "\"}";
  }
  int count() const { return count_; }
  std::string json() const {
    return "{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\", 64]") + inputs_ + "], \"parameters\": [" +
           f32_json("w", "[64, 64]") + ", " + f32_json("s", "[64]") + "], \"nodes\": [" + nodes_ + "], \"outputs\": [" +
           outputs_ + "]}";
  }

 private:
  std::string inputs_, nodes_, outputs_;
  int count_ = 0;
};

void chain(Growing &graph, int nodes) {
  std::string value = "x";
  while (graph.count() < nodes) {
    for (const char *op : {"neg", "abs", "sqrt", "sigmoid", "tanh"}) value = graph.add(op, {value});
  }
  graph.output(value);
}

void diamonds(Growing &graph, int nodes) {
  std::string value = "x";
  while (graph.count() < nodes) {
    const std::string left = graph.add("neg", {value}), right = graph.add("abs", {value});
    value = graph.add("maximum", {left, right});
  }
  graph.output(value);
}

void wide(Growing &graph, int nodes) {
  while (graph.count() < nodes) graph.output(graph.add("tanh", {graph.add("mul", {"x", graph.input()})}));
}

void repeated(Growing &graph, int nodes) {
  std::string value = "x";
  while (graph.count() < nodes) {
    const std::string active = graph.add("silu", {graph.add("linear", {value, "w"})});
    value = graph.add("add", {value, graph.add("mul", {graph.add("rms_norm", {active}), "s"})});
  }
  graph.output(value);
}

struct Growth {
  double time = 0, memory = 0;
};

// Of 10,000 nodes over 1,000: the fastest of five compiles each, in turn. A first compile each fills the cache, so that
// those which are measured find their kernels.
Growth growth_of(const std::string &folder, const std::string &name, void (*build)(Growing &, int)) {
  const int sizes[] = {effort().size(1000, 20), effort().size(10000, 200)};
  double seconds[] = {1e30, 1e30}, bytes[2] = {};
  for (int round = 0; round <= effort().rounds(5); ++round) {
    for (int i = 0; i < 2; ++i) {
      const std::string path = folder + "/" + name + std::to_string(sizes[i]) + ".json";
      if (round == 0) {
        Growing graph;
        build(graph, sizes[i]);
        cli::write_file(path, graph.json());
      }
      auto measured = [&](const char *what) { return run_process({KILN_BENCH_PLAN, path, folder + "/cache", what}); };
      if (round == 0) {
        measured("fill");
        bytes[i] = measured("heap");
      } else {
        seconds[i] = std::min(seconds[i], measured("time"));
      }
    }
  }
  return {seconds[1] / seconds[0], bytes[1] / bytes[0]};
}

const std::map<std::string, Growth> &growths() {
  static const std::map<std::string, Growth> measured = [] {
    const test::TemporaryFolder folder;
    std::map<std::string, Growth> all;
    for (const auto &[name, build] : std::initializer_list<std::pair<const char *, void (*)(Growing &, int)>>{
             {"chain", chain}, {"diamonds", diamonds}, {"wide", wide}, {"repeated", repeated}})
      all[name] = growth_of(folder.path(), name, build);
    return all;
  }();
  return measured;
}

void report_worst(benchmark::State &state, double Growth::*ratio) {
  for (auto _ : state) {
    const auto worst = std::max_element(growths().begin(), growths().end(), [&](const auto &a, const auto &b) {
      return a.second.*ratio < b.second.*ratio;
    });
    report(state, worst->second.*ratio, "x (" + worst->first + ")", 12, Better::lower);
  }
}

void plan_time_ratio_10k_1k(benchmark::State &state) { report_worst(state, &Growth::time); }
void plan_memory_ratio_10k_1k(benchmark::State &state) { report_worst(state, &Growth::memory); }

KILN_FIGURE(plan_time_ratio_10k_1k)
KILN_FIGURE(plan_memory_ratio_10k_1k)

}  // namespace
}  // namespace kiln::bench
