#include "figure.h"

#include <chrono>
#include <cmath>

namespace kiln::bench {

using namespace cli;

Effort &effort() {
  static Effort chosen;
  return chosen;
}

void report(benchmark::State &state, double value, const std::string &unit, double target, Better better) {
  state.counters["value"] = value;
  state.counters["target"] = target;
  state.counters["met"] = better == Better::higher ? value >= target : value <= target;
  state.SetLabel(unit);
}

Program::Program(const std::string &graph_json, int64_t threads, const std::string &mode,
                 const std::vector<std::string> &specialize, const std::function<void(kiln_context *)> &prepare,
                 const std::vector<std::pair<std::string, std::string>> &more) {
  Options settings, options;
  options.set("mode", mode);
  options.set("specialize", specialize);
  for (const auto &[name, value] : more) options.set(name, value);
  settings.set("threads", threads);
  settings.set("cache", "off");
  context_ = make<Context>(kiln_context_create, settings.get(), nullptr);
  if (prepare) prepare(context_.get());
  const Graph graph = make<Graph>(kiln_graph_parse, context_.get(), graph_json.data(), graph_json.size());
  kiln_executable *executable = nullptr;
  kiln_report *report = nullptr;
  check(kiln_compile(context_.get(), graph.get(), options.get(), &executable, &report));
  executable_.reset(executable);
  report_ = Report(report);
  call_ = make<Call>(kiln_call_create, executable_.get());
}

void Program::bind(const std::string &name, std::vector<int64_t> shape) {
  const size_t count = elements_of(shape);
  arrays_.push_back(std::make_unique<Array>(Array{name, std::vector<float>(count), std::move(shape)}));
  Array &array = *arrays_.back();
  fill(array.values);
  DLTensor tensor = {};
  tensor.data = array.values.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(array.shape.size());
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = array.shape.data();
  uint32_t slot = 0;
  check(kiln_call_slot(call_.get(), name.data(), name.size(), &slot));
  check(kiln_call_bind(call_.get(), slot, &tensor));
}

void Program::bind_file(const std::string &path) {
  file_ = make<Tensors>(kiln_tensors_open, path.data(), path.size());
  bind_all(call_, file_);
}

std::span<float> Program::values(const std::string &name) {
  for (const std::unique_ptr<Array> &array : arrays_)
    if (array->name == name) return array->values;
  throw Failure("nothing is bound to '" + name + "'");
}

size_t elements_of(std::span<const int64_t> shape) {
  size_t count = 1;
  for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
  return count;
}

void fill(std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5f + static_cast<float>(i % 1021) / 1021.0f;
}

void expect_close(double got, double expected, const std::string &what) {
  if (std::abs(got - expected) <= 1e-4 * std::abs(expected) + 1e-7) return;
  throw Failure(what + " is " + std::to_string(got) + ", expected " + std::to_string(expected));
}

std::string f32_json(const std::string &name, const std::string &shape) {
  return "{\"name\": \"" + name + "\", \"type\": {\"dtype\": \"f32\", \"shape\": " + shape + "}}";
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace kiln::bench
