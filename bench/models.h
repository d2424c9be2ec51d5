// The models in tests/models, run by two programs in turn.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "figure.h"

namespace kiln::bench {

// What a model is given: floats, or integers.
struct Array {
  std::vector<int64_t> shape;
  std::vector<float> floats = {};
  std::vector<int64_t> integers = {};  // instead

  DLTensor tensor();  // of the array's own memory
};
Array images_of(int64_t batch);   // for `digits`
Array tokens_of(int64_t length);  // for `chars`

std::string model_json(const std::string &model);  // its JSON

// Binds the model's weights and calls both programs in turn. A Failure where an output is further from the first one's
// than `tolerance` of it, and of 1. Reports how much faster the second one is, with the microseconds of both under
// these names.
void report_beside(benchmark::State &state, const std::string &model, Array input, std::vector<int64_t> output_shape,
                   std::array<Program *, 2> programs, const std::array<std::string, 2> &names, float tolerance);

}  // namespace kiln::bench
