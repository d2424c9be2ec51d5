// The values that other libraries give for an op's samples, as expect.py wrote them: expected/OP.json.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/attr.h"
#include "runtime/ops/op.h"

namespace kiln::testing {

// Of one output: its shape, and each `step`-th element in row-major order, from the first on.
struct ExpectedOutput {
  std::vector<int64_t> shape;
  int64_t step = 1;
  std::vector<double> f;   // of a float type, before they are rounded to it
  std::vector<int64_t> i;  // of an integer type or bool, before they wrap to it
};

// What a sample gives in some types: of its own ("own") or in place of f32.
struct ExpectedCase {
  std::vector<std::string> types;
  std::string inputs;  // digest_of_inputs
  std::vector<ExpectedOutput> outputs;
  std::string none;  // why there are no values, or ""
};

struct Expected {
  std::string peer;                                          // whose values these are
  std::map<std::string, std::vector<ExpectedCase>> samples;  // by name

  const ExpectedCase *find(const std::string &sample, std::string_view type) const;  // null: none
};

// An error names the file where it is not there or is not as expect.py writes it.
Result<Expected> read_expected(const Op &op);

// The first 16 hexadecimal digits of the BLAKE2b-256 of all elements, as f64 and i64; a NaN counts as the quiet one.
std::string digest_of_inputs(std::span<const TensorData> inputs);

// What is wrong with an output, or "".
std::string difference(const TensorData &got, const ExpectedOutput &expected, double tolerance);

}  // namespace kiln::testing
