// A trained model of this folder on its held-out data: what it achieves, on the compiled backend and on the reference.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "handles.h"

namespace kiln::demo {

struct Evaluation {
  double quality = 0;                       // digits: accuracy; chars: bits per character of the first window
  std::string shown;                        // the same for a person
  std::vector<std::vector<float>> outputs;  // logits, one array per run, row-major
  std::vector<double> figures;              // chars: bits per character of each window
  uint64_t call_bytes = 0;
};

// The greatest difference of elements; NaN when shapes differ or an element is NaN.
double max_abs_difference(const std::vector<std::vector<float>> &a, const std::vector<std::vector<float>> &b);

std::string model_folder(const std::string &name);
std::string plugin_of(const std::string &name);  // the path of the plugin that the model is run with

class Model {
 public:
  // `form`: what its weights are stored in, "f32" or one of quantize.py's. `files`: the folder with that form's
  // graph.json and weights.safetensors; the data are the model's own. `mode`: the compile's option. Under another than
  // "all" each layer is marked as a region: the nodes whose names begin with "layerN.".
  Model(const std::string &name, const std::string &form, const std::string &mode, const std::string &files,
        const std::string &cache);
  ~Model();

  // Compiles with the model's plugin; returns the report.
  cli::Report compile();
  Evaluation evaluate();
  // The same data on the reference backend: the graph as given, no plugin, floats computed in double.
  Evaluation evaluate_reference();
  // Why the model does not reach its bar, which is lower for weights of fewer bits, or empty. `error` is the outputs'
  // greatest difference.
  std::string judge(const Evaluation &compiled, const Evaluation &reference, double error) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln::demo
