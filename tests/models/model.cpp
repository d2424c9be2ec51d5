#include "tests/models/model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "session.h"

namespace kiln::demo {
namespace {

using namespace cli;

// What weights of a form may cost beside the f32 that they were trained in, or gain by chance.
struct Bar {
  std::string_view form;
  double accuracy, bits;  // digits; chars, a character
};
constexpr Bar bars[] = {
    {"f32", 0, 1e-4}, {"f16", 0, 5e-4}, {"bf16", 0.002, 2e-3}, {"int8", 0.002, 3e-3}, {"int4", 0.01, 3e-2}};
const Bar &bar_of(std::string_view form) {
  const auto *bar = std::ranges::find(bars, form, &Bar::form);
  if (bar == std::end(bars)) throw Failure("unknown form of weights '" + std::string(form) + "'");
  return *bar;
}

constexpr double logits_tolerance = 1e-3;  // f32 against double, over all layers of either model

// One array file of the model, mapped.
class Npy {
 public:
  explicit Npy(const std::string &path) : tensors_(make<Tensors>(kiln_tensors_open, path.data(), path.size())) {
    check(kiln_tensors_at(tensors_.get(), 0, nullptr, &tensor_));
  }
  const DLTensor &tensor() const { return *tensor_; }
  template <class T>
  const T *data() const {
    return reinterpret_cast<const T *>(static_cast<const std::byte *>(tensor_->data) + tensor_->byte_offset);
  }

 private:
  Tensors tensors_;
  const DLTensor *tensor_ = nullptr;
};

// A case of expected.json: a window of the held-out text.
struct Window {
  int64_t length, batch, start;
  double bits;
};

// The number after the occurrence `index` of "name": in a JSON text as plain as expected.json.
double number_of(const std::string &json, const std::string &name, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i <= index; ++i) {
    at = json.find("\"" + name + "\":", at);
    if (at == std::string::npos) throw Failure("expected.json has no " + name + " number " + std::to_string(index + 1));
    at += name.size() + 3;
  }
  return std::strtod(json.c_str() + at, nullptr);
}

std::vector<Window> windows_of(const std::string &folder) {
  const std::string json = read_file(folder + "/expected.json");
  std::vector<Window> windows;
  for (size_t i = 0; i < 2; ++i) {
    const auto integer = [&](const char *name) { return static_cast<int64_t>(number_of(json, name, i)); };
    windows.push_back(
        {integer("length"), integer("batch"), integer("start"), number_of(json, "bits_per_character", i)});
  }
  return windows;
}

int64_t argmax(const float *row, int64_t count) { return std::max_element(row, row + count) - row; }

// -log2 of the softmax's probability of `target`.
double bits_of(const float *logits, int64_t count, int64_t target) {
  const double most = *std::max_element(logits, logits + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(logits[i] - most);
  return (std::log(sum) + most - logits[target]) / std::log(2.0);
}

}  // namespace

double max_abs_difference(const std::vector<std::vector<float>> &a, const std::vector<std::vector<float>> &b) {
  double most = a.size() == b.size() ? 0 : NAN;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].size() != b[i].size()) return NAN;
    for (size_t j = 0; j < a[i].size(); ++j) {
      const double difference = std::abs(static_cast<double>(a[i][j]) - b[i][j]);
      if (std::isnan(difference)) return NAN;
      most = std::max(most, difference);
    }
  }
  return most;
}

std::string model_folder(const std::string &name) { return std::string(KILN_MODELS_DIR "/") + name; }

std::string plugin_of(const std::string &name) {
  return std::string(KILN_PLUGINS_DIR "/") + (name == "digits" ? "fold_batch_norm.so" : "fuse_rms_norm.so");
}

struct Model::State {
  std::string name, form, mode, folder, files;
  Context context;
  Tensors weights;
  Executable executable;

  static Context make_context(std::string_view cache) {
    Options options;
    options.set("cache", cache);
    return make<Context>(kiln_context_create, options.get(), nullptr);
  }

  Graph parse(const Context &where) const {
    const std::string json = read_file(files + "/graph.json");
    Graph graph = make<Graph>(kiln_graph_parse, where.get(), json.data(), json.size());
    return mode == "all" ? std::move(graph) : with_layers_marked(where, graph);
  }

  static Graph with_layers_marked(const Context &where, const Graph &graph) {
    const auto edit = make<Handle<kiln_edit, kiln_edit_destroy>>(kiln_edit_begin, where.get(), graph.get());
    uint64_t count = 0;
    check(kiln_graph_nodes(graph.get(), nullptr, 0, &count));
    std::vector<kiln_node> nodes(count);
    check(kiln_graph_nodes(graph.get(), nodes.data(), count, &count));
    for (const kiln_node node : nodes) {
      kiln_text text = {};
      check(kiln_node_name(graph.get(), node, &text));
      const std::string_view name(text.data, text.size), layer = name.substr(0, name.find('.'));
      if (kiln_node_kind(graph.get(), node) != KILN_NODE_OP || !layer.starts_with("layer")) continue;
      kiln_text region = {layer.data(), layer.size()};
      kiln_attr mark = {};
      mark.name = "kiln.region";
      mark.name_size = 11;
      mark.kind = KILN_ATTR_TEXT;
      mark.data = &region;
      mark.count = 1;
      check(kiln_edit_annotate(edit.get(), node, &mark, 1));
    }
    return make<Graph>(kiln_edit_finish, edit.get());
  }

  Call bound_call(const Executable &from) const {
    Call call = make<Call>(kiln_call_create, from.get());
    bind_all(call, weights);
    return call;
  }

  // Runs on one input; the only output is f32 of shape `shape`.
  static std::vector<float> run(const Call &call, const DLTensor &input, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    std::vector<float> result(static_cast<size_t>(count));
    DLTensor output = {};
    output.data = result.data();
    output.device = {kDLCPU, 0};
    output.ndim = static_cast<int32_t>(shape.size());
    output.dtype = {kDLFloat, 32, 1};
    output.shape = shape.data();
    const DLTensor *args[] = {&input, &output};
    check(kiln_call_run(call.get(), args, 2, nullptr));
    return result;
  }

  Evaluation evaluate(const Executable &from) const {
    const Call call = bound_call(from);
    Evaluation result = name == "digits" ? classify(call) : read_text(call);
    result.call_bytes = static_cast<uint64_t>(report_of(kiln_call_report, call.get()).i64("memory_bytes"));
    return result;
  }

  Evaluation classify(const Call &call) const {
    constexpr int64_t classes = 10;
    const Npy images(folder + "/test_images.npy"), labels(folder + "/test_labels.npy");
    const int64_t count = images.tensor().shape[0];
    Evaluation result;
    result.outputs.push_back(run(call, images.tensor(), {count, classes}));
    int64_t right = 0;
    for (int64_t i = 0; i < count; ++i) {
      right += argmax(&result.outputs[0][static_cast<size_t>(i * classes)], classes) == labels.data<int64_t>()[i];
    }
    result.quality = static_cast<double>(right) / static_cast<double>(count);
    char text[64];
    std::snprintf(text, sizeof text, "accuracy %.2f %%", 100 * result.quality);
    result.shown = text;
    return result;
  }

  Evaluation read_text(const Call &call) const {
    constexpr int64_t letters = 63;
    const Npy text(folder + "/held_out.npy");
    Evaluation result;
    for (const Window &window : windows_of(folder)) {
      std::vector<int64_t> tokens;
      for (int64_t w = 0; w < window.batch; ++w) {
        const int64_t *row = text.data<int64_t>() + window.start + w * (window.length + 1);
        tokens.insert(tokens.end(), row, row + window.length);
      }
      int64_t shape[] = {window.batch, window.length};
      DLTensor input = {};
      input.data = tokens.data();
      input.device = {kDLCPU, 0};
      input.ndim = 2;
      input.dtype = {kDLInt, 64, 1};
      input.shape = shape;
      result.outputs.push_back(run(call, input, {window.batch, window.length, letters}));

      double bits = 0;
      for (int64_t position = 0; position < window.batch * window.length; ++position) {
        const int64_t w = position / window.length, t = position % window.length;
        const int64_t target = text.data<int64_t>()[window.start + w * (window.length + 1) + t + 1];
        bits += bits_of(&result.outputs.back()[static_cast<size_t>(position * letters)], letters, target);
      }
      result.figures.push_back(bits / static_cast<double>(window.batch * window.length));
    }
    result.quality = result.figures[0];
    char shown[64];
    std::snprintf(shown, sizeof shown, "%.4f, %.4f bits/char", result.figures[0], result.figures[1]);
    result.shown = shown;
    return result;
  }
};

Model::Model(const std::string &name, const std::string &form, const std::string &mode, const std::string &files,
             const std::string &cache)
    : state_(std::make_unique<State>(
          State{name, form, mode, model_folder(name), files, State::make_context(cache), {}, {}})) {
  const std::string plugin = plugin_of(name), weights = files + "/weights.safetensors";
  check(kiln_plugin_load(state_->context.get(), plugin.data(), plugin.size(), nullptr));
  state_->weights = make<Tensors>(kiln_tensors_open, weights.data(), weights.size());
}

Model::~Model() = default;

Report Model::compile() {
  Options options;
  options.set("mode", state_->mode);
  kiln_executable *executable = nullptr;
  kiln_report *report = nullptr;
  check(kiln_compile(state_->context.get(), state_->parse(state_->context).get(), options.get(), &executable, &report));
  state_->executable.reset(executable);
  return Report(report);
}

Evaluation Model::evaluate() { return state_->evaluate(state_->executable); }

Evaluation Model::evaluate_reference() {
  const Context context = State::make_context("off");
  Options options;
  options.set("backend", "reference");
  kiln_executable *executable = nullptr;
  check(kiln_compile(context.get(), state_->parse(context).get(), options.get(), &executable, nullptr));
  return state_->evaluate(Executable(executable));
}

std::string Model::judge(const Evaluation &compiled, const Evaluation &reference, double error) const {
  if (!(error <= logits_tolerance)) return "the logits differ from the reference's by " + std::to_string(error);
  const Bar &bar = bar_of(state_->form);
  if (state_->name == "digits") {
    const double trained = number_of(read_file(state_->folder + "/expected.json"), "accuracy", 0);
    if (!(std::abs(compiled.quality - trained) <= bar.accuracy + 1e-9))
      return "the accuracy is " + std::to_string(compiled.quality);
    for (size_t i = 0; i < compiled.outputs[0].size(); i += 10) {
      if (argmax(&compiled.outputs[0][i], 10) != argmax(&reference.outputs[0][i], 10)) {
        return "image " + std::to_string(i / 10) + " is classified otherwise than by the reference";
      }
    }
    return "";
  }
  const std::vector<Window> windows = windows_of(state_->folder);
  for (size_t i = 0; i < windows.size(); ++i) {
    if (!(std::abs(compiled.figures[i] - windows[i].bits) <= bar.bits)) {
      return std::to_string(compiled.figures[i]) + " bits per character at length " +
             std::to_string(windows[i].length) + ", PyTorch has, with f32, " + std::to_string(windows[i].bits);
    }
  }
  return "";
}

}  // namespace kiln::demo
