// What becomes of weights that the last process prepared: a model with the matrices of GPT-2 124M, whose weights lie in
// a file, in processes of their own.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>

#include "figure.h"
#include "process.h"
#include "session.h"
#include "tests/temporary_folder.h"

namespace kiln::bench {
namespace {

struct Weight {
  std::string name;
  std::vector<int64_t> shape;
};

// Twelve blocks without their attention, whose matrices are square, and the products that follow; then the logits.
class Model {
 public:
  explicit Model(int64_t layers, int64_t vocabulary) {
    std::string x = "x";
    for (int64_t i = 0; i < layers; ++i) {
      const std::string at = std::to_string(i);
      const std::string q = product("q" + at, x, 768, 768), k = product("k" + at, x, 768, 768),
                        v = product("v" + at, x, 768, 768);
      node("qk" + at, "mul", {q, k});
      node("qkv" + at, "add", {"qk" + at, v});
      node("a" + at, "add", {x, product("o" + at, "qkv" + at, 768, 768)});
      node("g" + at, "gelu", {product("u" + at, "a" + at, 768, 3072)});
      x = node("x" + at, "add", {"a" + at, product("d" + at, "g" + at, 3072, 768)});
    }
    product("y", x, 768, vocabulary);
  }

  std::string json() const {
    std::string parameters;
    for (const Weight &weight : weights_)
      parameters += (parameters.empty() ? "" : ", ") + ("{\"name\": \"" + weight.name) +
                    R"(", "type": {"dtype": "f32", "shape": [)" + std::to_string(weight.shape[0]) + ", " +
                    std::to_string(weight.shape[1]) + "]}}";
    return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [128, 768]}}], "parameters": [)" +
           parameters + "], \"nodes\": [" + nodes_ + R"(], "outputs": [{"name": "y", "value": "y"}]})";
  }

  // Small values, so that what twelve layers make of them is finite. Returns their bytes.
  double write(const std::string &path) const {
    std::vector<std::vector<float>> values;
    std::vector<DLTensor> tensors;
    std::vector<const DLTensor *> pointers;
    std::vector<kiln_text> names;
    double bytes = 0;
    uint32_t state = 1;
    for (const Weight &weight : weights_) {
      std::vector<float> &of = values.emplace_back(static_cast<size_t>(weight.shape[0] * weight.shape[1]));
      for (float &value : of)
        value = (static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24F - 0.5F) * 0.04F;
      tensors.push_back(
          {of.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, const_cast<int64_t *>(weight.shape.data()), nullptr, 0});
      names.push_back({weight.name.data(), weight.name.size()});
      bytes += static_cast<double>(of.size() * sizeof(float));
    }
    for (const DLTensor &tensor : tensors) pointers.push_back(&tensor);
    cli::check(kiln_tensors_write(path.data(), path.size(), names.data(), pointers.data(), pointers.size()));
    return bytes;
  }

 private:
  std::string node(const std::string &name, const std::string &op, const std::vector<std::string> &inputs) {
    nodes_ += (nodes_.empty() ? "" : ", ") + ("{\"name\": \"" + name) + R"(", "op": ")" + op + R"(", "inputs": [)";
    for (const std::string &input : inputs) nodes_ += (&input == inputs.data() ? "\"" : ", \"") + input + "\"";
    nodes_ += "]}";
    return name;
  }
  std::string product(const std::string &name, const std::string &x, int64_t in, int64_t out) {
    weights_.push_back({"w" + name, {in, out}});
    return node(name, "matmul", {x, "w" + name});
  }

  std::string nodes_;
  std::vector<Weight> weights_;
};

struct Start {
  double ms = INFINITY, private_mib = INFINITY;
};

class Starts {
 public:
  Starts() : model_(effort().size(12, 1), effort().size(50257, 1024)) {
    cli::write_file(folder_.file("graph.json"), model_.json());
    bytes_ = model_.write(folder_.file("weights.safetensors"));
    timespec settled{4, 0};  // a file that was just written is not recorded
    nanosleep(&settled, nullptr);
    (void)start(true);  // packs, compiles, saves
  }
  double bytes() const { return bytes_; }
  Start start(bool prepared, const std::function<void()> &meanwhile = {}) const {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::vector<std::string> words = {
        KILN_BENCH_WEIGHTS,    folder_.file("graph.json"), folder_.file("weights.safetensors"),
        folder_.file("cache"), prepared ? "1" : "0",       std::to_string(std::chrono::nanoseconds(now).count())};
    if (meanwhile) words.emplace_back("stay");
    std::istringstream output(output_of_process(std::move(words), meanwhile));
    Start came;
    output >> came.ms >> came.private_mib;
    return came;
  }

 private:
  const test::TemporaryFolder folder_;
  const Model model_;
  double bytes_ = 0;
};

// From spawn to the first result, less a steady run, of a process whose program and packed weights are in the cache.
void warm_weights_ms(benchmark::State &state) {
  const Starts starts;
  for (auto _ : state) {
    std::vector<double> with, without;
    for (int i = 0; i < effort().rounds(7); ++i) {  // in turn
      with.push_back(starts.start(true).ms);
      without.push_back(starts.start(false).ms);
    }
    std::ranges::sort(with);
    std::ranges::sort(without);
    state.counters["packing_again_ms"] = without[without.size() / 2];
    report(state, with[with.size() / 2], "ms", 25, Better::lower);
  }
}

KILN_FIGURE(warm_weights_ms)

// Of the weights' bytes, what a process has in memory of its own while another one runs the same model.
void second_process_private_of_weights(benchmark::State &state) {
  const Starts starts;
  for (auto _ : state) {
    Start second, unshared;
    (void)starts.start(true, [&] {
      second = starts.start(true);
      unshared = starts.start(false);
    });
    const double mib = starts.bytes() / 1048576;
    state.counters["packing_again"] = unshared.private_mib / mib;
    report(state, second.private_mib / mib, "of the weights", 0.05, Better::lower);
  }
}

KILN_FIGURE(second_process_private_of_weights)

}  // namespace
}  // namespace kiln::bench
